package pipe

import "github.com/rollway/rollway/collector/columns"

// A Table has rows whose fields are in columns.
type Table struct {
	Cells []columns.Cells // by Field.Cells
	Round uint64          // tells it from tables that were in its memory before
}

// value returns the value of a field in a row, valid as long as r is.
func (t *Table) value(cells int, r *Row) Value {
	c := &t.Cells[cells]
	at := c.At(r.at)
	if at < 0 {
		return Value{}
	}
	var json []byte
	json, r.text = c.JSON(r.text, at)
	return valueOf(json, &r.text)
}
