package columns

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/klauspost/compress/huff0"
	"github.com/klauspost/compress/zstd"
)

const (
	formLines   = 0 // of a block
	formColumns = 1

	inline  = 96 // bytes up to which a stream is in the head of its column
	minRows = 16 // with fewer lines columns do not pay

	pauseRows = 256 // between two calls of Pause
)

// streamLimit returns how many bytes the streams and the paths of a block of lines may have in all. It
// bounds what a damaged block makes a reader allocate.
func streamLimit(lines int) int { return 3*lines + 64<<10 }

// An Encoder makes blocks. It is for one goroutine at a time. It keeps memory for the next
// block.
type Encoder struct {
	Pause func() // is called before each column, and every few hundred lines; nil: nothing
	// Text and Value, unless both are nil, get what filters need of the lines, to be used during the
	// call. Any three bytes in a row of a line are in something that Text gets, if each line has its end. Value gets each value as
	// it is in the line, except the time of a line. Both may leave out what they got before.
	Text, Value func([]byte)

	zstd     *zstd.Encoder
	huffman  huff0.Scratch
	lines    []byte
	splitter splitter
	shapes   Set
	holes    [][]int // columns of each shape; nil: its lines are stored whole
	known    trie
	rows     []int64 // shape of each line
	paths    map[string]int
	columns  [][]span    // values of each column
	after    [][][2]byte // of each column, what follows values
	times    int         // the column of the lines' times; -1: none
	distinct Set
	texts    cutter
	ints     []int64
	indexes  []int64 // of a dictionary
	bytes    []byte  // packed
	joined   []byte  // a stream
	dir      []byte
	chunks   []byte
	streams  int // bytes of all streams

	pathBytes int // of paths
}

// NewEncoder returns an Encoder.
func NewEncoder() (*Encoder, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false),
		zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(1<<20), zstd.WithSingleSegment(true))
	if err != nil {
		return nil, err
	}
	return &Encoder{zstd: enc, huffman: huff0.Scratch{Reuse: huff0.ReusePolicyNone}, paths: make(map[string]int)}, nil
}

// Append appends a block with the lines, each ended by '\n', to dst.
func (e *Encoder) Append(dst, lines []byte) []byte {
	e.lines = lines
	e.split()
	if len(e.rows) < minRows {
		for c := range e.columns {
			e.tell(c, formStrings)
		}
	} else if e.encode() {
		dst = append(dst, formColumns)
		dst = binary.AppendUvarint(dst, uint64(len(e.dir)))
		packed := e.pack(e.dir)
		dst = binary.AppendUvarint(dst, uint64(len(packed)))
		return append(append(dst, packed...), e.chunks...)
	}
	return e.zstd.EncodeAll(lines, append(dst, formLines))
}

// pause lets others work.
func (e *Encoder) pause() {
	if e.Pause != nil {
		e.Pause()
	}
}

// pack returns the bytes as one zstd frame, or as they are if that is not smaller.
func (e *Encoder) pack(b []byte) []byte {
	e.bytes = e.zstd.EncodeAll(b, e.bytes[:0])
	if len(e.bytes) >= len(b) {
		return b
	}
	return e.bytes
}

// split fills rows, shapes and columns.
func (e *Encoder) split() {
	e.shapes.Reset()
	e.known = append(e.known[:0], node{})
	clear(e.paths)
	e.pathBytes, e.times = 0, -1
	e.holes, e.rows, e.columns, e.after = e.holes[:0], e.rows[:0], e.columns[:0], e.after[:0]
	s := &e.splitter
	for start := 0; start < len(e.lines); {
		end, shape := len(e.lines), 0
		if n := bytes.IndexByte(e.lines[start:], '\n'); n >= 0 {
			end = start + n + 1
		}
		if s.values, shape = e.known.find(s.values[:0], e.lines[:end], start); shape < 0 {
			s.split(e.lines, start, end)
			ok := false
			if shape, ok = e.shape(s.shape); !ok {
				s.values = append(s.values[:0], span{int32(start), int32(end)})
				shape, _ = e.shape(wholeLine)
			}
		}
		e.rows = append(e.rows, int64(shape))
		for i, c := range e.holes[shape] {
			e.columns[c] = append(e.columns[c], s.values[i])
		}
		if len(e.rows)%pauseRows == 0 {
			e.pause()
		}
		start = end
	}
}

// shape returns the number of a shape; false: its lines are stored whole.
func (e *Encoder) shape(text []byte) (int, bool) {
	if len(e.holes) >= maxShapes && !bytes.Equal(text, wholeLine) {
		return 0, false
	}
	shape := e.shapes.Add(text)
	if shape < len(e.holes) {
		return shape, e.holes[shape] != nil
	}
	e.holes = append(e.holes, nil)
	paths, ok := appendPaths(nil, text, streamLimit(len(e.lines)))
	if !ok {
		return shape, false
	}
	pieces := bytes.Split(e.shapes.At(shape), wholeLine)
	for i, p := range paths {
		c, known := e.paths[p]
		if !known {
			c = len(e.columns)
			e.paths[p] = c
			e.pathBytes += len(p)
			e.columns = slices.Grow(e.columns, 1)[:c+1]
			e.columns[c] = e.columns[c][:0]
			e.after = slices.Grow(e.after, 1)[:c+1]
			e.after[c] = e.after[c][:0]
			if p == "time\x00" {
				e.times = c
			}
		}
		e.holes[shape] = append(e.holes[shape], c)
		if next := pieces[i+1]; len(next) >= 2 && !slices.Contains(e.after[c], [2]byte(next)) {
			e.after[c] = append(e.after[c], [2]byte(next))
		}
	}
	if len(pieces[0]) > 0 { // else it is wholeLine
		e.known.add(pieces, shape)
	}
	for _, p := range pieces {
		if e.Text != nil {
			e.Text(p)
		}
	}
	return shape, true
}

// encode fills dir and chunks; false: the streams are too long.
func (e *Encoder) encode() bool {
	e.dir, e.chunks, e.streams = e.dir[:0], e.chunks[:0], 0
	e.dir = binary.AppendUvarint(e.dir, uint64(len(e.rows)))
	e.dir = binary.AppendUvarint(e.dir, uint64(e.shapes.Len()))
	for i := range e.shapes.Len() {
		e.dir = appendBytes(e.dir, e.shapes.At(i))
	}
	e.dir = binary.AppendUvarint(e.dir, uint64(len(e.columns)+1))
	var head []byte
	for c := -1; c < len(e.columns); c++ {
		n, chunk := len(e.rows), len(e.chunks)
		if c < 0 {
			head = e.appendInts(head[:0], e.rows)
		} else {
			n = len(e.columns[c])
			head = e.appendColumn(head[:0], e.columns[c], e.lines, true)
			e.tell(c, head[0])
		}
		e.dir = binary.AppendUvarint(e.dir, uint64(n))
		e.dir = binary.AppendUvarint(e.dir, uint64(chunk))
		e.dir = appendBytes(e.dir, head)
	}
	return e.streams+len(e.dir)+e.pathBytes <= streamLimit(len(e.lines))
}

// tell gives column c, whose form it has got, to Text and Value. distinct has the values of a dictionary.
func (e *Encoder) tell(c int, form byte) {
	values := e.columns[c]
	switch {
	case e.Text == nil:
	case form == formConstant:
		e.tellOne(c, e.lines[values[0].start:values[0].end])
	case form == formDictionary:
		for i := range e.distinct.Len() {
			e.tellOne(c, e.distinct.At(i))
		}
	default:
		var before, part, value []byte
		for i, v := range values { // each with two bytes on both sides
			if i%pauseRows == 0 {
				e.pause()
			}
			before, part = part, e.lines[max(int(v.start)-2, 0):min(int(v.end)+2, len(e.lines))]
			n := common(before, part)
			e.Text(part[max(n-2, 0):])
			if next := e.lines[v.start:v.end]; c != e.times && !bytes.Equal(next, value) {
				e.Value(next)
				value = next
			}
		}
	}
}

// tellOne gives a value of column c to Text and Value, with whatever may be on its sides.
func (e *Encoder) tellOne(c int, value []byte) {
	b := append(append(e.bytes[:0], `":`...), value...)
	e.Text(b)
	for _, a := range e.after[c] {
		e.Text(append(b, a[:]...)[len(b)-2:])
	}
	if e.bytes = b; c != e.times {
		e.Value(value)
	}
}

// common returns how many bytes at their beginnings a and b have in common.
func common(a, b []byte) (n int) {
	for most := min(len(a), len(b)); n < most; n++ {
		if n+8 <= most {
			if x := binary.LittleEndian.Uint64(a[n:]) ^ binary.LittleEndian.Uint64(b[n:]); x != 0 {
				return n + bits.TrailingZeros64(x)/8
			}
			n += 7
		} else if a[n] != b[n] {
			break
		}
	}
	return n
}

func appendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

// appendStream appends b to the head, or to the chunks and its lengths to the head.
func (e *Encoder) appendStream(head, b []byte, pack func([]byte) []byte) []byte {
	e.streams += len(b)
	if len(b) <= inline {
		return append(binary.AppendUvarint(head, uint64(len(b))<<1), b...)
	}
	packed := pack(b)
	e.chunks = append(e.chunks, packed...)
	return binary.AppendUvarint(binary.AppendUvarint(head, uint64(len(b))<<1|1), uint64(len(packed)))
}
