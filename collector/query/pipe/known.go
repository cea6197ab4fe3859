package pipe

import (
	"time"

	"github.com/rollway/rollway/collector/columns"
)

// inTable reports whether the values of f in a row of a table are in one of the table's columns.
func (f *Field) inTable() bool { return f.Index < 0 && f.Find != nil }

// known has the groups of the last rows of a table, by what tells the values of its columns apart:
// no key is written of a row whose group is known.
type known struct {
	table   *Table
	of      uint64 // Table.Round
	columns []knownColumn
	useless bool   // a column has texts
	round   uint64 // of places that are valid
	places  []knownGroup
	row     knownGroup // looked for
}

const (
	maxKnown    = 3   // groups by more columns are looked up by their keys
	knownPlaces = 512 // a power of two
)

type knownGroup struct {
	ints   [maxKnown]int64
	absent uint64 // columns without a value, a bit each
	round  uint64
	group  int
}

// knownColumn is a column by which rows are grouped.
type knownColumn struct {
	*columns.Cells
	step       int64 // of times that are cut, in nanoseconds; 0: values
	start, end int64 // of the step that was last
}

// find returns the place of the row's group, which has it if its round is k.round; nil: there is none.
func (k *known) find(s *statsStep, r *Row) *knownGroup {
	if r.table != k.table || r.table.Round != k.of {
		k.use(s, r.table)
	}
	if k.useless {
		return nil
	}
	k.row = knownGroup{}
	hash := uint64(0)
	for i := range k.columns {
		c := &k.columns[i]
		at, n := c.At(r.at), int64(0)
		switch {
		case at < 0:
			k.row.absent |= 1 << i
		case c.step > 0:
			n = c.cut(c.Ints[at])
		case c.Kind != columns.Same:
			n = c.Ints[at]
		}
		k.row.ints[i] = n
		hash = (hash ^ uint64(n)) * 0x9e3779b97f4a7c15
	}
	hash ^= k.row.absent << 32
	place := &k.places[(hash^hash>>29)*0x9e3779b97f4a7c15>>(64-9)]
	if place.ints != k.row.ints || place.absent != k.row.absent {
		place.round = 0
	}
	return place
}

// note has place keep the group of the row that was looked for last.
func (k *known) note(place *knownGroup, group int) {
	if place != nil {
		*place = k.row
		place.round, place.group = k.round, group
	}
}

// forget is for groups that have other numbers now, and steps that are longer.
func (k *known) forget() {
	k.round++
	k.table = nil
}

// use is for the rows of a table.
func (k *known) use(s *statsStep, t *Table) {
	k.table, k.of, k.columns = t, t.Round, k.columns[:0]
	k.round++
	k.useless = len(s.Groups) > maxKnown
	for i := range s.Groups {
		g := &s.Groups[i]
		if k.useless = k.useless || !g.inTable(); k.useless {
			return
		}
		c := knownColumn{Cells: &t.Cells[g.Cells]}
		if c.Kind == columns.Times {
			c.step = int64(s.cuts[i].step)
		}
		k.useless = c.Kind == columns.Texts && c.Some()
		k.columns = append(k.columns, c)
	}
	if k.places == nil {
		k.places = make([]knownGroup, knownPlaces)
	}
}

// cut returns when the step begins that a time is in. See cut.of.
func (c *knownColumn) cut(at int64) int64 {
	if at < c.start || at >= c.end {
		sec, nsec := at/1e9, at%1e9
		if nsec < 0 {
			sec, nsec = sec-1, nsec+1e9
		}
		if c.step < int64(time.Second) {
			c.start = at - nsec%c.step
		} else {
			c.start = startOf(sec, time.Duration(c.step)) * 1e9
		}
		c.end = c.start + c.step
	}
	return c.start
}

// addCell adds to a state the value of f in a row of a table.
func addCell(s state, f *Field, r *Row) (grown int) {
	c := &r.table.Cells[f.Cells]
	at := c.At(r.at)
	if at < 0 {
		return 0
	}
	if n, ok := s.(*count); ok {
		n.n++
		return 0
	}
	if c.Kind == columns.Numbers {
		if s, ok := s.(intState); ok {
			if grown, ok := s.addInt(c.Ints[at], c.Digits); ok {
				return grown
			}
		}
	}
	if v := f.of(r); v.Kind != Absent {
		return s.add(v)
	}
	return 0
}
