package columns

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/rollway/rollway/internal/jsonline"
	"github.com/rollway/rollway/internal/recordlog"
)

// ErrDamaged is the error of bytes that no Encoder has made.
var ErrDamaged = errors.New("damaged block of columns")

// decoder exists from the start, as a bubble of synctest must not make it.
var decoder = func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(recordlog.MaxBody), zstd.WithDecoderLowmem(true))
	if err != nil {
		panic("columns: " + err.Error()) // its options are constants
	}
	return d
}()

// AppendFrame appends the n unpacked bytes of one zstd frame, which tells their number, to
// dst. The error is ErrDamaged.
func AppendFrame(dst, frame []byte, n int) ([]byte, error) {
	var h zstd.Header
	if err := h.Decode(frame); err != nil || !h.HasFCS || h.FrameContentSize != uint64(n) {
		return dst, ErrDamaged
	}
	start := len(dst)
	out, err := decoder.DecodeAll(frame, slices.Grow(dst, n))
	if err != nil || len(out)-start != n {
		return dst, ErrDamaged
	}
	return out, nil
}

// appendStored appends the n bytes that are stored as they are, if they are as many, or as
// a zstd frame.
func appendStored(dst, stored []byte, n int) ([]byte, error) {
	if len(stored) == n {
		return append(dst, stored...), nil
	}
	return AppendFrame(dst, stored, n)
}

// A Block reads blocks, one after the other. It is for one goroutine at a time. Its zero
// value is ready; it keeps memory for the next block.
type Block struct {
	size    int // of the lines
	budget  int // bytes that streams may still have
	dir     []byte
	chunks  []byte
	rows    []int64 // of each line, its shape
	shapes  []shape
	columns []column
	paths   []string // of the columns
	streams [][]byte // memory of streams
	used    int
	bad     bool
}

type shape struct {
	pieces [][]byte // one more than holes
	holes  []int    // columns
}

type column struct {
	n     int
	chunk int
	head  []byte
	next  int // value
	values
}

// values is a column that was read.
type values struct {
	text    []byte
	ends    []int   // of the strings in text
	indexes []int64 // of the string of each value; nil: each has its own
	same    bool    // all values are the first string
}

func (v *values) at(i int) []byte {
	if v.same {
		i = 0
	} else if v.indexes != nil {
		i = int(v.indexes[i])
	}
	return v.string(i)
}

// string returns one of the strings in text.
func (v *values) string(i int) []byte {
	start := 0
	if i > 0 {
		start = v.ends[i-1]
	}
	return v.text[start:v.ends[i]]
}

// read reads the values of c; false: they are damaged.
func (b *Block) read(c *column) bool {
	r := reader{b: b, head: c.head, chunk: c.chunk}
	c.next, c.values = 0, r.column(c.n)
	return !b.bad
}

// Open reads the directory of a block whose lines have size bytes. The error is ErrDamaged,
// also for a block without columns.
func (b *Block) Open(block []byte, size int) error {
	if len(block) == 0 || block[0] != formColumns {
		return ErrDamaged
	}
	block = block[1:]
	b.size, b.budget, b.bad, b.used = size, streamLimit(size), false, 0
	r := reader{b: b, head: block}
	n, packed := r.number(b.budget), r.bytes(r.number(len(block)))
	if b.bad {
		return ErrDamaged
	}
	b.chunks = r.head
	b.budget -= n
	var err error
	if b.dir, err = appendStored(b.dir[:0], packed, n); err != nil {
		return err
	}
	r = reader{b: b, head: b.dir}
	rows := r.number(size)
	b.shapes, b.paths = b.shapes[:0], b.paths[:0]
	paths := make(map[string]int)
	for range r.number(maxShapes + 1) {
		b.shapes = append(b.shapes, b.shape(r.bytes(r.number(len(r.head))), paths))
	}
	b.columns = b.columns[:0]
	for i := range r.number(len(paths) + 1) {
		c := column{n: r.number(rows), chunk: r.number(len(b.chunks))}
		c.head = r.bytes(r.number(len(r.head)))
		if b.bad {
			return ErrDamaged
		}
		if i > 0 {
			b.columns = append(b.columns, c)
			continue
		}
		shapes := reader{b: b, head: c.head, chunk: c.chunk}
		b.rows = shapes.ints(rows)
	}
	for _, row := range b.rows {
		b.bad = b.bad || uint64(row) >= uint64(len(b.shapes))
	}
	if b.bad || len(b.columns) != len(paths) || len(b.rows) != rows {
		return ErrDamaged
	}
	return nil
}

// shape reads a shape. paths has the columns by their paths, and gets new ones.
func (b *Block) shape(text []byte, paths map[string]int) (s shape) {
	of, ok := appendPaths(nil, text)
	if !ok {
		return s // an encoder uses it for no line
	}
	for _, p := range of {
		c, known := paths[p]
		if !known {
			c = len(paths)
			paths[p] = c
			b.paths = append(b.paths, p)
		}
		s.holes = append(s.holes, c)
	}
	s.pieces = bytes.Split(text, []byte{hole})
	if len(s.pieces) != len(s.holes)+1 {
		b.bad = true
	}
	return s
}

// A reader reads the head of a column. What does not fit sets bad of the block.
type reader struct {
	b     *Block
	head  []byte
	chunk int
}

func (r *reader) fail() { r.b.bad, r.head = true, nil }

// number reads a number of at most limit.
func (r *reader) number(limit int) int {
	v, n := binary.Uvarint(r.head)
	if n <= 0 || v > uint64(limit) {
		r.fail()
		return 0
	}
	r.head = r.head[n:]
	return int(v)
}

func (r *reader) signed() int64 {
	v, n := binary.Varint(r.head)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.head = r.head[n:]
	return v
}

func (r *reader) bytes(n int) []byte {
	if n > len(r.head) {
		r.fail()
		return nil
	}
	out := r.head[:n:n]
	r.head = r.head[n:]
	return out
}

func (r *reader) byte() byte {
	if b := r.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

// stream reads a stream. Its bytes are valid until the next block.
func (r *reader) stream() []byte {
	n := r.number(2*r.b.budget + 1)
	size := n >> 1
	if r.b.budget -= size; r.b.budget < 0 {
		r.fail()
	}
	if n&1 == 0 {
		return r.bytes(size)
	}
	stored := r.number(len(r.b.chunks) - r.chunk)
	if r.b.bad {
		return nil
	}
	packed := r.b.chunks[r.chunk : r.chunk+stored]
	r.chunk += stored
	if stored == size {
		return packed
	}
	if r.b.used == len(r.b.streams) {
		r.b.streams = append(r.b.streams, nil)
	}
	out, err := AppendFrame(r.b.streams[r.b.used][:0], packed, size)
	r.b.streams[r.b.used] = out
	r.b.used++
	if err != nil {
		r.fail()
		return nil
	}
	return out
}

// ints reads n integers.
func (r *reader) ints(n int) []int64 {
	if n == 0 {
		return []int64{}
	}
	flags := r.byte()
	width, delta, scale := int(flags&15), flags&16 != 0, int(flags>>5)
	least, first := r.signed(), int64(0)
	if delta {
		first = r.signed()
		n--
	}
	if width > 8 || scale > 3 || r.b.bad {
		r.fail()
		return nil
	}
	out := make([]int64, n, n+1)
	for w := range width {
		plane := r.stream()
		if len(plane) != n {
			r.fail()
			return nil
		}
		for i, c := range plane {
			out[i] |= int64(c) << (8 * w)
		}
	}
	for i := range out {
		out[i] += least
	}
	if delta {
		out = slices.Insert(out, 0, first)
		for i := 1; i < len(out); i++ {
			out[i] += out[i-1]
		}
	}
	for range scale {
		for i := range out {
			out[i] *= 1000
		}
	}
	return out
}

// strings reads n strings.
func (r *reader) strings(n int) (v values) {
	ends := r.ints(n)
	v.text = r.stream()
	v.ends = make([]int, len(ends))
	end := 0
	for i, size := range ends {
		if size < 0 || size > int64(len(v.text)-end) {
			r.fail()
			return values{}
		}
		end += int(size)
		v.ends[i] = end
	}
	if end != len(v.text) {
		r.fail()
	}
	return v
}

// column reads a column of n values.
func (r *reader) column(n int) (v values) {
	form := r.byte()
	if n == 0 || r.b.bad {
		return v
	}
	switch form {
	case formConstant:
		text := r.bytes(r.number(len(r.head)))
		return values{text: text, ends: []int{len(text)}, same: true}
	case formStrings:
		return r.strings(n)
	case formDictionary:
		distinct := r.number(n)
		v = r.strings(distinct)
		if v.indexes = r.ints(n); r.outside(v.indexes, distinct) {
			r.fail()
		}
		return v
	case formDecimal, formDigits, formTimes:
		return r.numbers(n, form)
	case formHex:
		return r.hex(n)
	case formTexts:
		return r.texts(n)
	}
	r.fail()
	return v
}

// outside reports whether an index is not below limit.
func (r *reader) outside(indexes []int64, limit int) bool {
	for _, i := range indexes {
		if uint64(i) >= uint64(limit) {
			return true
		}
	}
	return false
}

// numbers reads n integers and writes them as text.
func (r *reader) numbers(n int, form byte) (v values) {
	digits := 0
	if form != formTimes {
		if digits = int(r.byte()); digits > maxDigits {
			r.fail()
			return v
		}
	}
	ints := r.ints(n)
	if r.b.bad {
		return v
	}
	v.ends = make([]int, len(ints))
	v.text = make([]byte, 0, len(ints)*(digits+4))
	for i, value := range ints {
		switch form {
		case formDecimal:
			v.text = appendDecimal(v.text, value, digits)
		case formDigits:
			v.text = appendDigits(v.text, value, digits)
		default:
			sec, nsec := value/1e9, value%1e9
			if nsec < 0 {
				sec, nsec = sec-1, nsec+1e9
			}
			v.text = append(jsonline.AppendUnix(append(v.text, '"'), sec, int(nsec)), '"')
		}
		v.ends[i] = len(v.text)
	}
	return v
}

func (r *reader) hex(n int) (v values) {
	size := int(r.byte())
	data := r.stream()
	if size == 0 || size%2 != 0 || len(data) != n*size/2 {
		r.fail()
		return v
	}
	const digits = "0123456789abcdef"
	v.text, v.ends = make([]byte, 0, n*size), make([]int, n)
	for _, c := range data {
		v.text = append(v.text, digits[c>>4], digits[c&15])
	}
	for i := range v.ends {
		v.ends[i] = (i + 1) * size
	}
	return v
}

// texts reads n texts and fills the holes of their templates.
func (r *reader) texts(n int) (v values) {
	kept := r.number(n)
	templates := r.strings(kept)
	indexes := r.ints(n)
	if r.outside(indexes, kept+1) || r.b.bad {
		r.fail()
		return v
	}
	counts := make([]int, kept+1)
	for _, t := range indexes {
		counts[t]++
	}
	pieces := make([][][]byte, kept+1)
	variables := make([][]values, kept+1)
	variables[0] = []values{r.column(counts[0])}
	for t := 1; t <= kept; t++ {
		pieces[t] = bytes.Split(templates.at(t-1), []byte{hole})
		for range pieces[t][1:] {
			if variables[t] = append(variables[t], r.column(counts[t])); r.b.bad {
				return v
			}
		}
	}
	v.ends = make([]int, n)
	next := make([]int, kept+1)
	for i, t := range indexes {
		at := next[t]
		next[t]++
		if t == 0 {
			v.text = append(v.text, variables[0][0].at(at)...)
		} else {
			v.text = append(v.text, pieces[t][0]...)
			for h := range variables[t] {
				v.text = append(append(v.text, variables[t][h].at(at)...), pieces[t][h+1]...)
			}
		}
		if v.ends[i] = len(v.text); len(v.text) > r.b.size {
			r.fail()
			return v
		}
	}
	return v
}
