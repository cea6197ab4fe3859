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
	Indexes             // Ints are those of a dictionary
	Spelled             // Ints are what varies in them; Spelling is the rest
	Numbers             // they are JSON numbers, Ints in units of 10 to the power of -Digits
	Times               // they are times as in canonical lines, Ints in nanoseconds since 1970
)

// Cells are the values of a column by the rows of its block, until the block is opened again. Values
// with equal Ints are equal. So are those of other blocks that are Times, that are Numbers with the same
// Digits, or that have the same Spelling.
type Cells struct {
	Kind     Kind
	Ints     []int64 // of each value
	Digits   int
	Spelling []byte
	all      bool    // each row has a value, in their order
	rows     []int32 // else: of each row, its value; -1: it has none
	values   *values
	spelled  []int64 // memory
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

// Fixed reports whether all rows have one value, or none.
func (c *Cells) Fixed() bool { return c.Kind == Same && c.all || !c.Some() }

// Reset leaves no row a value.
func (c *Cells) Reset() {
	*c = Cells{rows: c.rows[:0], Spelling: c.Spelling[:0], spelled: c.spelled[:0]}
}

// Values returns At of rows, valid until buf is used again.
func (c *Cells) Values(buf *[]int32, rows []int32) []int32 {
	if c.all {
		return rows
	}
	out := (*buf)[:0]
	for _, row := range rows {
		out = append(out, int32(c.At(int(row))))
	}
	*buf = out
	return out
}

// Len returns how many values there are in a dictionary.
func (c *Cells) Len() int { return len(c.values.ends) }

// Size returns how many bytes the values in a dictionary have.
func (c *Cells) Size() int { return len(c.values.text) }

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
	return b.cells(column, &c.values, to)
}

// Timed is Cells without reading the column: instead of each time there is text, which is JSON. It
// returns false if it is not known of all values of the column that they are times in b.Times.
func (b *Block) Timed(column int, text []byte, to *Cells) (bool, error) {
	if !b.timed(column) {
		return false, nil
	}
	return true, b.cells(column, &values{form: formConstant, text: text, ends: []int{len(text)}}, to)
}

// cells fills to with values of a column.
func (b *Block) cells(column int, v *values, to *Cells) error {
	c := &b.columns[column]
	to.values = v
	to.Kind, to.Ints, to.Digits = v.kind()
	switch t := v.texts; {
	case to.Kind == Spelled:
		to.Spelling = append(to.Spelling[:0], byte(to.Digits))
	case to.Kind == Texts && t != nil && t.spell(to):
		to.Kind, to.Ints = Spelled, to.spelled
	case to.Kind == Texts && t != nil && b.Own:
		t.readAll()
	}
	if b.bad {
		return ErrDamaged
	}
	has := b.having(column)
	to.all = b.every(column)
	if to.rows = to.rows[:0]; to.all {
		return nil
	}
	to.rows = slices.Grow(to.rows, len(b.rows))[:len(b.rows)]
	next := int32(0)
	for i, shape := range b.rows {
		is := int32(has[shape])
		to.rows[i] = next | (is - 1) // -1 if it is 0
		next += is
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
		return Indexes, v.ints, 0
	case formDigits:
		return Spelled, v.ints, v.digits
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
