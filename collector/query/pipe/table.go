package pipe

import "github.com/rollway/rollway/collector/columns"

// A Table has rows whose fields are in columns.
type Table struct {
	Cells []columns.Cells // by Field.Cells
	Round uint64          // tells it from tables that were in its memory before
}

// of returns the value of a field in a row, valid as long as r is.
func (t *Table) of(cells int, r *Row) Value {
	c := &t.Cells[cells]
	if at := c.At(r.at); at >= 0 {
		return t.value(c, at, r)
	}
	return Value{}
}

// value returns a value of cells, valid as long as r is.
func (t *Table) value(c *columns.Cells, at int, r *Row) Value {
	var json []byte
	json, r.text = c.JSON(r.text, at)
	return valueOf(json, &r.text)
}
