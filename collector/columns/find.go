package columns

import (
	"bytes"
	"math/bits"
)

// Rows is a set of rows of a block: row i is bit i%64 of word i/64.
type Rows []uint64

func (r Rows) has(i int) bool { return r[i/64]>>(i%64)&1 != 0 }
func (r Rows) add(i int)      { r[i/64] |= 1 << (i % 64) }

// Len returns how many rows are in the set.
func (r Rows) Len() (n int) {
	for _, w := range r {
		n += bits.OnesCount64(w)
	}
	return n
}

// Add adds the rows of another set of the same block.
func (r Rows) Add(other Rows) {
	for i := range r {
		r[i] |= other[i]
	}
}

// Invert makes r the set of the rows of b that were not in it.
func (r Rows) Invert(b *Block) {
	for i := range r {
		r[i] = ^r[i]
	}
	if n := len(b.rows) % 64; n > 0 {
		r[len(r)-1] &= 1<<n - 1
	}
}

// Intersect removes the rows that are not in another set of the same block.
func (r Rows) Intersect(other Rows) {
	for i := range r {
		r[i] &= other[i]
	}
}

// A Matcher says which values are looked for. A value is its text as it is in the line.
type Matcher struct {
	Any   [][]byte                // a value that matches has one of them; none: it need not
	Match func(value []byte) bool // nil: each value matches that has one of Any
}

func (m *Matcher) matches(value []byte) bool { return m.Match == nil || m.Match(value) }

// Rows returns an empty set for the rows of the block.
func (b *Block) Rows() Rows { return newRows(len(b.rows)) }

func newRows(n int) Rows { return make(Rows, (n+63)/64) }

// Find adds the rows to out that have a value which matches. Of each column it calls matcher
// with the path: the keys that lead to its values, as they are in the lines, each ended by a
// byte 00. The path of lines that are stored whole is empty. If matcher returns nil, Find does
// not read the column. The error is ErrDamaged.
func (b *Block) Find(out Rows, matcher func(path string) *Matcher) error {
	for i, path := range b.paths {
		m := matcher(path)
		if m == nil {
			continue
		}
		c := &b.columns[i]
		if c.n == 0 {
			continue
		}
		if !b.read(c) || !b.write(c) {
			return ErrDamaged
		}
		if c.form != formConstant || m.matches(c.text) {
			b.find(out, i, m)
		}
	}
	return nil
}

// write writes the values of a column as strings; false: they are damaged.
func (b *Block) write(c *column) bool {
	if c.ends != nil {
		return true
	}
	v := values{form: formStrings, ends: make([]int, c.n)}
	for i := range v.ends {
		v.text = c.append(v.text, i)
		if v.ends[i] = len(v.text); len(v.text) > b.size {
			return false
		}
	}
	c.values = v
	return true
}

// find is Find for a column that was read.
func (b *Block) find(out Rows, column int, m *Matcher) {
	c := &b.columns[column]
	var hits Rows // the strings that match; nil: all
	if c.form != formConstant {
		hits = newRows(len(c.ends))
		if c.findStrings(hits, m); hits.Len() == 0 {
			return
		}
	}
	value := 0
	for i, shape := range b.rows {
		if !b.shapes[shape].has(column) {
			continue
		}
		if value == c.n { // damaged: AppendRows will tell
			return
		}
		at := value
		if c.form == formDictionary {
			at = int(c.indexes[value])
		}
		if hits == nil || hits.has(at) {
			out.add(i)
		}
		value++
	}
}

func (s *shape) has(column int) bool {
	for _, h := range s.holes {
		if h == column {
			return true
		}
	}
	return false
}

// findStrings adds the numbers of the strings that match to out.
func (v *values) findStrings(out Rows, m *Matcher) {
	if len(m.Any) == 0 {
		for i := range v.ends {
			if m.matches(v.string(i)) {
				out.add(i)
			}
		}
		return
	}
	for _, any := range m.Any {
		at, i := 0, 0 // in text, and the number of the string there
		for {
			n := bytes.Index(v.text[at:], any)
			if n < 0 {
				break
			}
			for at += n; v.ends[i] <= at; {
				i++
			}
			if at+len(any) <= v.ends[i] && m.matches(v.string(i)) {
				out.add(i)
				at = v.ends[i]
			} else {
				at++
			}
		}
	}
}
