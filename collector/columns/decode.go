package columns

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"unsafe"

	"github.com/klauspost/compress/huff0"
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
	Times Range  // in which the times of all lines are, to be set before Open; zero: it is not known

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
	memory  []int64  // of integers, what is left
	most    []int64  // all of it
	holes   []column // memory of variables, and what is left of it
	spare   []column
	has     []uint8 // see having
	huffman *huff0.Scratch
	bad     bool

	known     map[string]*knownShape
	knownSize int // of their texts and paths
}

type shape struct {
	pieces [][]byte // one more than holes
	holes  []int    // columns
	lines  int      // that have it
}

type column struct {
	n      int
	chunk  int
	head   []byte // and what follows it
	read   bool
	inside bool // of a variable
	next   int  // value
	values      // the form alone is known of a variable that was not read
}

// values is a column that was read. Its values are not written as text before they are
// needed.
type values struct {
	form   byte
	text   []byte
	ends   []int   // of the strings in text; nil: there are none
	ints   []int64 // of numbers, or of a dictionary the string of each value; see complete
	packed *packed // instead
	digits int     // of numbers and of hexadecimal digits
	texts  *texts
}

// texts is a column of texts.
type texts struct {
	block     *Block
	n         int        // values
	which     *packed    // templates as they are stored
	all       bool       // many are needed: see complete
	templates []int64    // of each value; nil: which has them, all one or a byte each. See complete
	rank      []int64    // of each value, among those with its template
	counts    []int      // of each template, values
	pieces    [][][]byte // of each template
	variables [][]column // of each template and hole, see variable
}

// variable returns the values of a hole of a template; nil: they are damaged.
func (t *texts) variable(template int64, hole int) *values {
	c := &t.variables[template][hole]
	if !t.block.read(c) {
		return nil
	}
	return &c.values
}

// readAll reads all variables; false: they are damaged.
func (t *texts) readAll() bool {
	for template := range t.variables {
		for hole := range t.variables[template] {
			if t.variable(int64(template), hole) == nil {
				return false
			}
		}
	}
	return true
}

// int returns integer i.
func (v *values) int(i int) int64 {
	if v.packed != nil {
		return v.packed.at(i)
	}
	return v.ints[i]
}

// index returns which of the strings value i is.
func (v *values) index(i int) int {
	switch v.form {
	case formConstant:
		return 0
	case formDictionary:
		return int(v.int(i))
	}
	return i
}

// number is how many strings or values there are that index tells.
func (c *column) number() int {
	if c.ends != nil {
		return len(c.ends)
	}
	return c.n
}

// append appends value i.
func (v *values) append(dst []byte, i int) []byte {
	if v.ends != nil {
		return append(dst, v.string(v.index(i))...)
	}
	switch v.form {
	case formDecimal:
		return appendDecimal(dst, v.int(i), v.digits)
	case formDigits:
		return appendDigits(dst, v.int(i), v.digits)
	case formTimes:
		sec, nsec := v.int(i)/1e9, v.int(i)%1e9
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

// place returns the template of value i, and how many values before it have that.
func (t *texts) place(i int) (template int64, rank int) {
	if t.templates != nil {
		return t.templates[i], int(t.rank[i])
	}
	if t.which.width == 0 {
		return t.which.least, i
	}
	plane := t.which.planes[0]
	return t.which.at(i), bytes.Count(plane[:i], plane[i:i+1])
}

// append appends value i, or if the block turns out to be damaged, which that tells, only some of it.
func (t *texts) append(dst []byte, i int) []byte {
	if t.block.bad {
		return dst
	}
	template, rank := t.place(i)
	return t.join(dst, template, rank)
}

// join is append for the value of a template that has a rank there.
func (t *texts) join(dst []byte, template int64, rank int) []byte {
	if t.block.bad {
		return dst
	}
	variables, pieces := t.variables[template], t.pieces[template]
	for h := range variables {
		if template > 0 {
			dst = append(dst, pieces[h]...)
		}
		c := &variables[h]
		if !c.read && !(t.all && t.block.read(c) || t.block.readSome(c)) {
			return dst
		}
		dst = c.append(dst, rank)
	}
	if template > 0 {
		dst = append(dst, pieces[len(pieces)-1]...)
	}
	return dst
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
	if !b.readSome(c) {
		return false
	}
	b.complete(&c.values)
	return true
}

// readSome is read, if a few values are needed.
func (b *Block) readSome(c *column) bool {
	if !c.read {
		b.pause()
		r := reader{b: b, head: c.head, chunk: c.chunk}
		c.values, c.read = r.column(c.n, !c.inside), true
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
	if b.Held() > maxHeld {
		b.dir, b.streams, b.most, b.holes = nil, nil, nil, nil
	}
	b.size, b.budget, b.values, b.bad, b.used, b.memory, b.spare = size, streamLimit(size), 3*size, false, 0, b.most, b.holes
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

// maxHeld is how many bytes a block keeps for the next one.
const maxHeld = 8 << 20

// Held returns how many bytes of memory there are for the next block.
func (b *Block) Held() int {
	n := cap(b.dir) + 8*len(b.most) + int(unsafe.Sizeof(column{}))*len(b.holes)
	for _, s := range b.streams {
		n += cap(s)
	}
	return n
}

// A knownShape is what the text of a shape means.
type knownShape struct {
	pieces [][]byte
	paths  []string // of its holes
	size   int      // of the paths
}

// shape reads a shape. paths has the columns by their paths, and gets new ones.
func (b *Block) shape(text []byte, paths map[string]int) (s shape) {
	k := b.knownShape(text)
	if k == nil || k.size > b.budget {
		return s // an encoder uses it for no line
	}
	s.holes = make([]int, 0, len(k.paths))
	for _, p := range k.paths {
		c, known := paths[p]
		if !known {
			c = len(paths)
			paths[p] = c
			b.paths = append(b.paths, p)
			b.budget -= len(p)
		}
		s.holes = append(s.holes, c)
	}
	s.pieces = k.pieces
	if len(s.pieces) != len(s.holes)+1 {
		b.bad = true
	}
	return s
}

// knownShape returns what the text of a shape means, which it remembers: blocks that follow each
// other have shapes in common. It returns nil for a shape that is not valid.
func (b *Block) knownShape(text []byte) *knownShape {
	if k := b.known[string(text)]; k != nil {
		return k
	}
	const most = 64 << 10 // bytes
	paths, ok := appendPaths(nil, text, b.budget)
	if !ok {
		return nil
	}
	text = bytes.Clone(text)
	k := &knownShape{pieces: bytes.Split(text, []byte{hole}), paths: paths, size: len(strings.Join(paths, ""))}
	if b.knownSize += len(text) + k.size; b.known == nil || b.knownSize > most {
		b.known, b.knownSize = make(map[string]*knownShape), 0
	}
	b.known[string(text)] = k
	return k
}
