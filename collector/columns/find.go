package columns

import (
	"bytes"
	"math"
	"math/bits"
	"slices"
)

// Rows is a set of rows of a block: row i is bit i%64 of word i/64.
type Rows []uint64

// Has reports whether row i is in the set.
func (r Rows) Has(i int) bool { return r[i/64]>>(i%64)&1 != 0 }

func (r Rows) add(i int) { r[i/64] |= 1 << (i % 64) }

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

// Keep removes the rows for which keep returns false.
func (r Rows) Keep(keep func(row int) bool) {
	for i, w := range r {
		for ; w != 0; w &= w - 1 {
			if row := 64*i + bits.TrailingZeros64(w); !keep(row) {
				r[i] &^= w & -w
			}
		}
	}
}

// AppendTo appends the rows of the set that are not before from, and before to.
func (r Rows) AppendTo(dst []int32, from, to int) []int32 {
	for i := from / 64; 64*i < to; i++ {
		w := r[i]
		if n := from - 64*i; n > 0 {
			w &= math.MaxUint64 << n
		}
		if n := to - 64*i; n < 64 {
			w &= 1<<n - 1
		}
		for ; w != 0; w &= w - 1 {
			dst = append(dst, int32(64*i+bits.TrailingZeros64(w)))
		}
	}
	return dst
}

// Remove removes the rows of another set of the same block.
func (r Rows) Remove(other Rows) {
	for i := range r {
		r[i] &^= other[i]
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

	Within Rows // that are asked about, others may be left out; nil: all

	// Of columns of numbers or of times, the values that match. nil: Any and Match tell it.
	Numbers func(digits int) Range // in units of 10 to the power of -digits
	Times   *Range                 // in nanoseconds since 1970
}

// A Range is the integers from First to Last, both included.
type Range struct{ First, Last int64 }

// all reports whether all values match.
func (m *Matcher) all() bool { return m.Match == nil && len(m.Any) == 0 }

func (m *Matcher) matches(value []byte) bool { return m.Match == nil || m.Match(value) }

// has reports whether a value has one of Any.
func (m *Matcher) has(value []byte) bool {
	return slices.ContainsFunc(m.Any, func(any []byte) bool { return bytes.Contains(value, any) })
}

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
		var hits Rows
		if !m.all() && !b.allWithin(i, m.Times) {
			if !b.readSome(c) {
				return ErrDamaged
			}
			if m.Within != nil && c.form == formTexts && len(m.Any) > 0 {
				hits = b.findTexts(c.texts, m, b.valuesOf(i, m.Within))
			} else {
				hits = b.find(&c.values, c.n, m)
			}
			switch hits.Len() {
			case 0:
				continue
			case c.number():
				hits = nil // all
			}
		}
		b.rowsOf(out, i, hits)
	}
	if b.bad {
		return ErrDamaged
	}
	return nil
}

// allWithin reports whether it is known that all values of a column are times in a range.
func (b *Block) allWithin(column int, r *Range) bool {
	return r != nil && b.timed(column) && r.First <= b.Times.First && b.Times.Last <= r.Last
}

// timed reports whether the values of a column are times in b.Times.
func (b *Block) timed(column int) bool {
	return b.Times != Range{} && b.paths[column] == "time\x00" && bytes.HasPrefix(b.columns[column].head, []byte{formTimes})
}

// find returns which of the n values match, by their index.
func (b *Block) find(v *values, n int, m *Matcher) Rows {
	switch {
	case v.form == formTexts && len(m.Any) > 0:
		return b.findTexts(v.texts, m, nil)
	}
	if v.ends == nil {
		b.complete(v)
	}
	switch {
	case v.form == formDecimal && m.Numbers != nil:
		return v.within(m.Numbers(v.digits))
	case v.form == formTimes && m.Times != nil:
		return v.within(*m.Times)
	}
	b.write(v, n)
	hits := newRows(len(v.ends))
	v.findStrings(hits, m)
	return hits
}

// within returns which of the integers are in r.
func (v *values) within(r Range) Rows {
	out := newRows(len(v.ints))
	for i, n := range v.ints {
		if r.First <= n && n <= r.Last {
			out.add(i)
		}
	}
	return out
}

// write writes the n values as strings.
func (b *Block) write(v *values, n int) {
	if v.ends != nil {
		return
	}
	s := values{form: formStrings, ends: make([]int, n)}
	for i := range s.ends {
		s.text = v.append(s.text, i)
		if s.ends[i] = len(s.text); len(s.text) > b.size {
			b.bad = true
			s.text = nil
			clear(s.ends)
			break
		}
	}
	if v.ints != nil { // they are of use later
		s.form, s.ints, s.digits = v.form, v.ints, v.digits
	}
	s.texts = v.texts
	*v = s
}

// rowsOf adds the rows that have the values hits of a column to out; nil: those that have any.
func (b *Block) rowsOf(out Rows, column int, hits Rows) {
	c := &b.columns[column]
	has := b.having(column)
	if hits != nil && c.form == formDictionary {
		hits = c.valuesOf(hits)
	}
	if hits != nil && b.every(column) {
		out.Add(hits)
		return
	}
	value := 0
	for i := range out {
		word := uint64(0)
		for bit, shape := range b.rows[64*i : min(64*i+64, len(b.rows))] {
			word |= uint64(has[shape]) << (bit & 63)
		}
		if n := bits.OnesCount64(word); value+n > c.n {
			b.bad = true
			return
		} else if hits == nil {
			value += n
		} else {
			for w := word; w != 0; w &= w - 1 {
				if !hits.Has(value) {
					word &^= w & -w
				}
				value++
			}
		}
		out[i] |= word
	}
}

// valuesOf returns which values of a dictionary are one of the strings.
func (c *column) valuesOf(strings Rows) Rows {
	out := newRows(c.n)
	if c.packed == nil {
		for i, s := range c.ints {
			if strings.Has(int(s)) {
				out.add(i)
			}
		}
		return out
	}
	var is [256]uint64 // of each byte
	for i := range c.ends[min(int(c.packed.least), len(c.ends)):min(int(c.packed.least)+256, len(c.ends))] {
		if strings.Has(i + int(c.packed.least)) {
			is[i] = 1
		}
	}
	for i, b := range c.packed.planes[0] {
		out[i/64] |= is[b] << (i % 64)
	}
	return out
}

// valuesOf returns which values of a column the rows have.
func (b *Block) valuesOf(column int, rows Rows) Rows {
	if b.every(column) {
		return rows
	}
	n := b.columns[column].n
	out, has, value := newRows(n), b.having(column), 0
	for row, shape := range b.rows {
		if has[shape] == 0 {
			continue
		}
		if value == n {
			b.bad = true
			break
		}
		if rows.Has(row) {
			out.add(value)
		}
		value++
	}
	return out
}

// every reports whether each row has a value of a column.
func (b *Block) every(column int) bool {
	for i := range b.shapes {
		if b.columns[column].n != len(b.rows) || b.shapes[i].lines > 0 && !b.Has(i, column) {
			return false
		}
	}
	return true
}

// having returns 1 for each shape that has a column, and 0 for the others. It is valid until the next call.
func (b *Block) having(column int) []uint8 {
	b.has = slices.Grow(b.has[:0], len(b.shapes))[:len(b.shapes)]
	clear(b.has)
	for i := range b.shapes {
		if b.Has(i, column) {
			b.has[i] = 1
		}
	}
	return b.has
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
