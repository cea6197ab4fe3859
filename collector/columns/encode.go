package columns

import (
	"bytes"
	"encoding/binary"
	"slices"

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

	zstd     *zstd.Encoder
	lines    []byte
	splitter splitter
	shapes   Set
	holes    [][]int // columns of each shape; nil: its lines are stored whole
	rows     []int64 // shape of each line
	paths    map[string]int
	columns  [][]span // values of each column
	distinct Set
	texts    cutter
	ints     []int64
	bytes    []byte
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
	return &Encoder{zstd: enc, paths: make(map[string]int)}, nil
}

// Append appends a block with the lines, each ended by '\n', to dst.
func (e *Encoder) Append(dst, lines []byte) []byte {
	e.lines = lines
	e.split()
	if len(e.rows) < minRows || !e.encode() {
		return e.zstd.EncodeAll(lines, append(dst, formLines))
	}
	dst = append(dst, formColumns)
	dst = binary.AppendUvarint(dst, uint64(len(e.dir)))
	packed := e.pack(e.dir)
	dst = binary.AppendUvarint(dst, uint64(len(packed)))
	return append(append(dst, packed...), e.chunks...)
}

// Values calls f with each value of the lines that were appended last, as it is in the line, except
// their times. Of equal values of one key in a row it takes the first.
func (e *Encoder) Values(f func(value []byte)) {
	for path, c := range e.paths {
		if path == "time\x00" {
			continue
		}
		e.pause()
		var last []byte
		for _, at := range e.columns[c] {
			if v := e.lines[at.start:at.end]; !bytes.Equal(v, last) {
				f(v)
				last = v
			}
		}
	}
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
	clear(e.paths)
	e.pathBytes = 0
	e.holes, e.rows, e.columns = e.holes[:0], e.rows[:0], e.columns[:0]
	for start := 0; start < len(e.lines); {
		end := len(e.lines)
		if n := bytes.IndexByte(e.lines[start:], '\n'); n >= 0 {
			end = start + n + 1
		}
		s := &e.splitter
		s.split(e.lines, start, end)
		shape, ok := e.shape(s.shape)
		if !ok {
			s.values = append(s.values[:0], span{start, end})
			shape, _ = e.shape(wholeLine)
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
	for _, p := range paths {
		c, known := e.paths[p]
		if !known {
			c = len(e.columns)
			e.paths[p] = c
			e.pathBytes += len(p)
			e.columns = slices.Grow(e.columns, 1)[:c+1]
			e.columns[c] = e.columns[c][:0]
		}
		e.holes[shape] = append(e.holes[shape], c)
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
		}
		e.dir = binary.AppendUvarint(e.dir, uint64(n))
		e.dir = binary.AppendUvarint(e.dir, uint64(chunk))
		e.dir = appendBytes(e.dir, head)
	}
	return e.streams+len(e.dir)+e.pathBytes <= streamLimit(len(e.lines))
}

func appendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

// appendStream appends b to the head, or to the chunks and its lengths to the head.
func (e *Encoder) appendStream(head, b []byte) []byte {
	e.streams += len(b)
	if len(b) <= inline {
		return append(binary.AppendUvarint(head, uint64(len(b))<<1), b...)
	}
	packed := e.pack(b)
	e.chunks = append(e.chunks, packed...)
	return binary.AppendUvarint(binary.AppendUvarint(head, uint64(len(b))<<1|1), uint64(len(packed)))
}
