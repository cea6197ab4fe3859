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
	Pause func() // is called before each column is unpacked, and every thousand lines; nil: nothing
	Own   bool   // columns that were read do not refer to the bytes that Open got

	size    int // of the lines
	budget  int // bytes that streams and paths may still have
	values  int // that columns may still have: each has a byte of a line, or of a value
	dir     []byte
	chunks  []byte
	rows    []int64 // of each line, its shape
	shapes  []shape
	columns []column
	paths   []string // of the columns
	streams [][]byte // memory of streams
	used    int
	has     []bool // see having
	bad     bool
}

type shape struct {
	pieces [][]byte // one more than holes
	holes  []int    // columns
	lines  int      // that have it
}

type column struct {
	n     int
	chunk int
	head  []byte
	read  bool
	next  int // value
	values
}

// values is a column that was read. Its values are not written as text before they are
// needed.
type values struct {
	form    byte
	text    []byte
	ends    []int   // of the strings in text; nil: there are none
	indexes []int64 // of a dictionary, the string of each value
	ints    []int64 // of numbers
	digits  int     // of numbers and of hexadecimal digits
	texts   *texts
}

// texts is a column of texts.
type texts struct {
	templates []int64    // of each value
	rank      []int      // of each value, among those with its template
	whole     int        // how many have template 0
	pieces    [][][]byte // of each template
	variables [][]values // of each template and hole
}

// index returns which of the strings value i is.
func (v *values) index(i int) int {
	switch v.form {
	case formConstant:
		return 0
	case formDictionary:
		return int(v.indexes[i])
	}
	return i
}

// append appends value i.
func (v *values) append(dst []byte, i int) []byte {
	if v.ends != nil {
		return append(dst, v.string(v.index(i))...)
	}
	switch v.form {
	case formDecimal:
		return appendDecimal(dst, v.ints[i], v.digits)
	case formDigits:
		return appendDigits(dst, v.ints[i], v.digits)
	case formTimes:
		sec, nsec := v.ints[i]/1e9, v.ints[i]%1e9
		if nsec < 0 {
			sec, nsec = sec-1, nsec+1e9
		}
		return append(jsonline.AppendUnix(append(dst, '"'), sec, int(nsec)), '"')
	case formHex:
		return appendHex(dst, v.text[i*v.digits/2:(i+1)*v.digits/2])
	}
	return v.texts.append(dst, i)
}

func appendHex(dst, data []byte) []byte {
	const digits = "0123456789abcdef"
	for _, c := range data {
		dst = append(dst, digits[c>>4], digits[c&15])
	}
	return dst
}

func (t *texts) append(dst []byte, i int) []byte {
	template, rank := t.templates[i], t.rank[i]
	variables, pieces := t.variables[template], t.pieces[template]
	if template == 0 {
		return variables[0].append(dst, rank)
	}
	for h := range variables {
		dst = variables[h].append(append(dst, pieces[h]...), rank)
	}
	return append(dst, pieces[len(variables)]...)
}

// string returns one of the strings in text.
func (v *values) string(i int) []byte {
	start := 0
	if i > 0 {
		start = v.ends[i-1]
	}
	return v.text[start:v.ends[i]]
}

// read reads the values of c, if that was not done; false: they are damaged.
func (b *Block) read(c *column) bool {
	if !c.read {
		b.pause()
		r := reader{b: b, head: c.head, chunk: c.chunk}
		c.values, c.read = r.column(c.n, true), true
	}
	return !b.bad
}

// pause lets others work.
func (b *Block) pause() {
	if b.Pause != nil {
		b.Pause()
	}
}

// Open reads the directory of a block whose lines have size bytes. The error is ErrDamaged,
// also for a block without columns.
func (b *Block) Open(block []byte, size int) error {
	if len(block) == 0 || block[0] != formColumns {
		return ErrDamaged
	}
	block = block[1:]
	b.size, b.budget, b.values, b.bad, b.used = size, streamLimit(size), 3*size, false, 0
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
		if uint64(row) >= uint64(len(b.shapes)) || b.shapes[row].pieces == nil {
			return ErrDamaged
		}
		b.shapes[row].lines++
	}
	if b.bad || len(b.columns) != len(paths) || len(b.rows) != rows {
		return ErrDamaged
	}
	return nil
}

// shape reads a shape. paths has the columns by their paths, and gets new ones.
func (b *Block) shape(text []byte, paths map[string]int) (s shape) {
	of, ok := appendPaths(nil, text, b.budget)
	if !ok {
		return s // an encoder uses it for no line
	}
	for _, p := range of {
		c, known := paths[p]
		if !known {
			c = len(paths)
			paths[p] = c
			b.paths = append(b.paths, p)
			b.budget -= len(p)
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
	if stored == size && !r.b.Own {
		return packed
	}
	if r.b.used == len(r.b.streams) {
		r.b.streams = append(r.b.streams, nil)
	}
	out, err := appendStored(r.b.streams[r.b.used][:0], packed, size)
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

// column reads a column of n values. Only with whole may they be texts.
func (r *reader) column(n int, whole bool) (v values) {
	form := r.byte()
	if r.b.values -= n; r.b.values < 0 || form == formTexts && !whole {
		r.fail()
	}
	if n == 0 || r.b.bad {
		return v
	}
	switch form {
	case formConstant:
		v.text = r.bytes(r.number(len(r.head)))
		v.ends = []int{len(v.text)}
	case formStrings:
		v = r.strings(n)
	case formDictionary:
		distinct := r.number(n)
		v = r.strings(distinct)
		if v.indexes = r.ints(n); r.outside(v.indexes, distinct) {
			r.fail()
		}
	case formDecimal, formDigits:
		if v.digits = int(r.byte()); v.digits > maxDigits {
			r.fail()
		}
		v.ints = r.ints(n)
	case formTimes:
		v.ints = r.ints(n)
	case formHex:
		v.digits = int(r.byte())
		if v.text = r.stream(); v.digits == 0 || v.digits%2 != 0 || len(v.text) != n*v.digits/2 {
			r.fail()
		}
	case formTexts:
		v.texts = r.texts(n)
	default:
		r.fail()
	}
	v.form = form
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

// texts reads n texts.
func (r *reader) texts(n int) *texts {
	kept := r.number(n)
	templates := r.strings(kept)
	t := &texts{templates: r.ints(n), rank: make([]int, n), pieces: make([][][]byte, kept+1), variables: make([][]values, kept+1)}
	if r.outside(t.templates, kept+1) || r.b.bad {
		r.fail()
		return t
	}
	counts := make([]int, kept+1)
	for i, template := range t.templates {
		t.rank[i] = counts[template]
		counts[template]++
	}
	t.whole = counts[0]
	t.variables[0] = []values{r.column(t.whole, false)}
	for i := 1; i <= kept; i++ {
		t.pieces[i] = bytes.Split(templates.string(i-1), []byte{hole})
		for range t.pieces[i][1:] {
			if t.variables[i] = append(t.variables[i], r.column(counts[i], false)); r.b.bad {
				return t
			}
		}
	}
	return t
}
