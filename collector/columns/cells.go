package columns

import (
	"slices"
	"strconv"
)

// A Kind says how the values of Cells are told apart without their texts.
type Kind uint8

// The kinds of Cells.
const (
	Texts   Kind = iota // not at all
	Same                // all are one value
	Indexes             // those that are equal have equal Ints
	Numbers             // likewise: they are JSON numbers, Ints in units of 10 to the power of -Digits
	Times               // likewise: they are times as in canonical lines, Ints in nanoseconds since 1970
)

// Cells are the values of a column by the rows of its block, until the block is opened again.
type Cells struct {
	Kind   Kind
	Ints   []int64 // of each value
	Digits int
	all    bool    // each row has a value, in their order
	rows   []int32 // else: of each row, its value; -1: it has none
	values *values
}

// At returns the number of the value of a row; -1: it has none.
func (c *Cells) At(row int) int {
	switch {
	case c.all:
		return row
	case row < len(c.rows):
		return int(c.rows[row])
	}
	return -1
}

// Some reports whether a row may have a value.
func (c *Cells) Some() bool { return c.all || len(c.rows) > 0 }

// Reset leaves no row a value.
func (c *Cells) Reset() { *c = Cells{rows: c.rows[:0]} }

// JSON returns a value as it is in the line. It may be at the end of buf, which is returned with
// what was appended to it.
func (c *Cells) JSON(buf []byte, value int) (json, _ []byte) {
	if v := c.values; v.ends != nil {
		return v.string(v.index(value)), buf
	}
	start := len(buf)
	buf = c.values.append(buf, value)
	return buf[start:len(buf):len(buf)], buf
}

// Cells reads a column into to, whose memory it uses again. The error is ErrDamaged.
func (b *Block) Cells(column int, to *Cells) error {
	c := &b.columns[column]
	if !b.read(c) {
		return ErrDamaged
	}
	to.values = &c.values
	to.Kind, to.Ints, to.Digits = c.values.kind()
	has := b.having(column)
	if to.all = true; c.n == len(b.rows) {
		for i := range b.shapes {
			to.all = to.all && (has[i] || b.shapes[i].lines == 0)
		}
	} else {
		to.all = false
	}
	if to.rows = to.rows[:0]; to.all {
		return nil
	}
	to.rows = slices.Grow(to.rows, len(b.rows))[:len(b.rows)]
	next := int32(0)
	for i, shape := range b.rows {
		to.rows[i] = -1
		if has[shape] {
			to.rows[i] = next
			next++
		}
	}
	if int(next) > c.n {
		return ErrDamaged
	}
	return nil
}

func (v *values) kind() (_ Kind, ints []int64, digits int) {
	switch v.form {
	case formConstant:
		return Same, nil, 0
	case formDictionary:
		return Indexes, v.indexes, 0
	case formDigits:
		return Indexes, v.ints, 0
	case formDecimal:
		return Numbers, v.ints, v.digits
	case formTimes:
		return Times, v.ints, 0
	}
	return Texts, nil, 0
}

// Len returns how many rows the block has.
func (b *Block) Len() int { return len(b.rows) }

// Shapes returns how many shapes the lines of the block have.
func (b *Block) Shapes() int { return len(b.shapes) }

// AppendShape appends a shape as a line, in which the value of each hole is its number, from 0;
// false: lines with it are stored whole, or there is none.
func (b *Block) AppendShape(dst []byte, shape int) ([]byte, bool) {
	s := &b.shapes[shape]
	if len(s.holes) == 0 || b.paths[s.holes[0]] == "" {
		return dst, false
	}
	for i := range s.holes {
		dst = strconv.AppendInt(append(dst, s.pieces[i]...), int64(i), 10)
	}
	return append(dst, s.pieces[len(s.holes)]...), true
}

// Column returns the column of a hole of a shape.
func (b *Block) Column(shape, hole int) int { return b.shapes[shape].holes[hole] }

// Has reports whether a shape has a column.
func (b *Block) Has(shape, column int) bool { return slices.Contains(b.shapes[shape].holes, column) }

// Lines returns how many lines have a shape.
func (b *Block) Lines(shape int) int { return b.shapes[shape].lines }

// Of returns the rows that are of the shapes.
func (b *Block) Of(shapes []bool) Rows {
	out := b.Rows()
	for i, shape := range b.rows {
		if shapes[shape] {
			out.add(i)
		}
	}
	return out
}
