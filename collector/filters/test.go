package filters

import (
	"encoding/binary"
	"io"
	"slices"

	"github.com/rollway/rollway/collector/columns"
	"github.com/rollway/rollway/internal/recordlog"
)

// A Test asks of a frame whether it may have something. Nil is a test that every frame passes.
type Test struct {
	any  bool // of tests; else all
	of   []*Test
	rows []int  // of trigrams, that all have to be there
	hash uint64 // of a value; 0: none
}

// maxTrigrams is how many trigrams of a text are looked at.
const maxTrigrams = 12

// Text returns the test for lines that have the text, which is not escaped, anywhere.
func Text(text string) *Test {
	n := len(text) - 2
	if n <= 0 {
		return nil
	}
	t := new(Test)
	for i := range min(n, maxTrigrams) {
		at := i * n / min(n, maxTrigrams)
		t.rows = append(t.rows, int(rowOf(uint32(text[at])|uint32(text[at+1])<<8|uint32(text[at+2])<<16)))
	}
	return t
}

// Value returns the test for lines with a field that has the value: a text without quotes, or
// any JSON scalar.
func Value(text string) *Test {
	hash, ok := hashOf([]byte(text))
	if !ok {
		return nil
	}
	return &Test{hash: hash}
}

// All returns the test for all of the tests.
func All(tests ...*Test) *Test {
	t := new(Test)
	for _, of := range tests {
		if of != nil {
			t.of = append(t.of, of)
		}
	}
	if len(t.of) == 0 {
		return nil
	}
	return t
}

// Any returns the test for one of the tests.
func Any(tests ...*Test) *Test {
	for _, of := range tests {
		if of == nil {
			return nil
		}
	}
	return &Test{any: true, of: tests}
}

// Frames are the frames of a segment that cannot have what a test asks for, by the numbers of their
// first records, in ascending order.
type Frames []uint64

// Excluded returns the frames that do not pass t. The section has size bytes. The error is of
// reading, or of a section that no Builder has made.
func Excluded(section io.ReaderAt, size int64, t *Test) (Frames, error) {
	if t == nil || size == 0 {
		return nil, nil
	}
	groups, err := readHead(section, size)
	if err != nil {
		return nil, err
	}
	var out Frames
	for i := range groups {
		g := &groups[i]
		pass, err := g.pass(t, ^uint64(0))
		if err != nil {
			return nil, err
		}
		for j, first := range g.frames {
			if pass>>j&1 == 0 {
				out = append(out, first)
			}
		}
	}
	return out, nil
}

// Passes reports whether f may have what t asks for.
func (f *Frame) Passes(t *Test) bool {
	if t == nil {
		return true
	}
	if t.any {
		return slices.ContainsFunc(t.of, f.Passes)
	}
	fails := func(of *Test) bool { return !f.Passes(of) }
	lacks := func(row int) bool { return f.trigrams[row/64]>>(row%64)&1 == 0 }
	return !slices.ContainsFunc(t.of, fails) && !slices.ContainsFunc(t.rows, lacks) &&
		(t.hash == 0 || f.unknown || slices.Contains(f.values, t.hash))
}

// group is one that is read.
type group struct {
	section io.ReaderAt
	frames  []uint64
	unknown uint64
	pages   []page
}

type page struct {
	pos    int64
	stored int
	sum    uint32
	rows   []byte // nil: not read
}

func readHead(section io.ReaderAt, size int64) ([]group, error) {
	var start [8]byte
	if err := readAll(section, start[:], 0); err != nil {
		return nil, err
	}
	n := int64(binary.LittleEndian.Uint32(start[:]))
	if n > size-8 || n > maxHead {
		return nil, recordlog.ErrDamaged
	}
	head := make([]byte, n)
	if err := readAll(section, head, 8); err != nil {
		return nil, err
	}
	if recordlog.Checksum(head) != binary.LittleEndian.Uint32(start[4:]) {
		return nil, recordlog.ErrDamaged
	}
	r := reader{b: head, pos: 8 + n, size: size}
	groups := make([]group, r.number(uint64(n)/trigramPages))
	for i := range groups {
		groups[i] = r.group(section)
	}
	if r.bad || len(r.b) > 0 || r.pos != size {
		return nil, recordlog.ErrDamaged
	}
	return groups, nil
}

func readAll(r io.ReaderAt, b []byte, pos int64) error {
	if n, err := r.ReadAt(b, pos); n < len(b) {
		if err == io.EOF {
			return recordlog.ErrDamaged
		}
		return err
	}
	return nil
}

// A reader reads the head of a section.
type reader struct {
	b    []byte
	last uint64 // first record of the frame before
	pos  int64  // of the next page
	size int64  // of the section
	bad  bool
}

// number reads a number up to most.
func (r *reader) number(most uint64) uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > most {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

// fixed reads n bytes.
func (r *reader) fixed(n int) []byte {
	if len(r.b) < n {
		r.bad, r.b = true, nil
		return make([]byte, n)
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) group(section io.ReaderAt) group {
	g := group{section: section, frames: make([]uint64, r.number(groupFrames))}
	for i := range g.frames {
		r.last += r.number(1 << 63)
		g.frames[i] = r.last
	}
	g.unknown = binary.LittleEndian.Uint64(r.fixed(8))
	g.pages = make([]page, r.number(uint64(len(r.b))/pageHead))
	for i := range g.pages {
		p := page{pos: r.pos, stored: int(r.number(pageBytes)), sum: binary.LittleEndian.Uint32(r.fixed(4))}
		r.pos += int64(p.stored)
		g.pages[i] = p
	}
	r.bad = r.bad || r.pos > r.size || len(g.pages) < trigramPages
	return g
}

// pass returns which of the frames in from pass t, a bit for each.
func (g *group) pass(t *Test, from uint64) (pass uint64, err error) {
	if t.any {
		for _, of := range t.of {
			p, err := g.pass(of, from&^pass)
			if err != nil {
				return 0, err
			}
			pass |= p
		}
		return pass, nil
	}
	pass = from
	for _, of := range t.of {
		if pass, err = g.pass(of, pass); err != nil {
			return 0, err
		}
	}
	for _, row := range t.rows {
		if pass == 0 {
			break
		}
		bits, err := g.row(row)
		if err != nil {
			return 0, err
		}
		pass &= bits
	}
	if t.hash == 0 || pass == 0 {
		return pass, nil
	}
	has, err := g.value(t.hash)
	return pass & has, err
}

// value returns which frames may have a value.
func (g *group) value(hash uint64) (uint64, error) {
	pages := len(g.pages) - trigramPages
	if pages == 0 {
		return g.unknown, nil
	}
	page, rows := valueAt(hash, pages)
	has := ^uint64(0)
	for _, row := range rows {
		bits, err := g.row((trigramPages+page)*pageRows + row)
		if err != nil {
			return 0, err
		}
		has &= bits
	}
	return has | g.unknown, nil
}

// row returns a row, which it reads with its page.
func (g *group) row(row int) (uint64, error) {
	p := &g.pages[row/pageRows]
	if p.rows == nil {
		stored := make([]byte, p.stored)
		err := readAll(g.section, stored, p.pos)
		if err == nil && recordlog.Checksum(stored) != p.sum {
			err = recordlog.ErrDamaged
		}
		if p.rows = stored; err == nil && p.stored < pageBytes {
			p.rows, err = columns.AppendFrame(nil, stored, pageBytes)
		}
		if err != nil {
			return 0, err
		}
	}
	return binary.LittleEndian.Uint64(p.rows[8*(row%pageRows):]), nil
}
