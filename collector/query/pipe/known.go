package pipe

import (
	"time"

	"github.com/rollway/rollway/collector/columns"
)

// inTable reports whether the values of f in a row of a table are in one of the table's columns.
func (f *Field) inTable() bool { return f.Index < 0 && f.Find != nil }

// rows is row for rows of a table.
func (s *statsStep) rows(t *Table, rows []int32) error {
	grown := 0
	s.groups = s.groups[:0]
	s.known.use(s, t)
	from := 0 // of the rows that are not added yet
	for i, row := range rows {
		place := s.known.find(int(row))
		if place != nil && place.round == s.known.round {
			s.groups = append(s.groups, int32(place.group))
			continue
		}
		if s.known.regroups {
			grown += s.addRows(t, rows[from:i])
			from = i
		}
		s.one = Row{table: t, at: int(row), text: s.one.text[:0]}
		group, more := s.groupOf(&s.one)
		grown += more
		s.known.note(place, group)
		s.known.use(s, t)
		s.groups = append(s.groups, int32(group))
	}
	return s.take(grown + s.addRows(t, rows[from:]))
}

// addRows adds rows to their groups, which are s.groups.
func (s *statsStep) addRows(t *Table, rows []int32) (grown int) {
	for i, states := range s.states {
		switch f := s.Calls[i].Field; {
		case f == nil:
			for _, group := range s.groups {
				grown += states.add(int(group), Value{})
			}
		case f.inTable():
			s.one = Row{table: t, text: s.one.text[:0]}
			grown += states.addCells(&t.Cells[f.Cells], rows, s.groups, &s.one)
		}
	}
	s.groups = s.groups[:0]
	return grown
}

// known has the groups of the last rows of a table, by what tells the values of its columns apart:
// no key is written of a row whose group is known.
type known struct {
	regroups bool // a new group may give others other numbers
	table    *Table
	of       uint64 // Table.Round
	columns  []knownColumn
	useless  bool   // a column has texts
	round    uint64 // of places that are valid
	places   []knownGroup
	row      knownGroup // looked for
}

const (
	maxKnown    = 3 // groups by more columns are looked up by their keys
	knownBits   = 9
	knownPlaces = 1 << knownBits
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

// use is for the rows of a table.
func (k *known) use(s *statsStep, t *Table) {
	if t == k.table && t.Round == k.of {
		return
	}
	k.table, k.of, k.columns = t, t.Round, k.columns[:0]
	k.round++
	k.useless = len(s.Groups) > maxKnown
	for i := range s.Groups {
		g := &s.Groups[i]
		k.regroups = k.regroups || g.Most > 0
		if k.useless = k.useless || !g.inTable(); k.useless {
			continue
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

// find returns the place of a row's group, which has it if its round is k.round; nil: there is no
// place.
func (k *known) find(row int) *knownGroup {
	if k.useless {
		return nil
	}
	const mix = 0x9e3779b97f4a7c15
	k.row.absent = 0
	hash := uint64(0)
	for i := range k.columns {
		c := &k.columns[i]
		at, n := c.At(row), int64(0)
		switch {
		case at < 0:
			k.row.absent |= 1 << i
		case c.step > 0:
			n = c.cut(c.Ints[at])
		case c.Kind != columns.Same:
			n = c.Ints[at]
		}
		k.row.ints[i] = n
		hash = (hash ^ uint64(n)) * mix
	}
	hash ^= k.row.absent << 32
	place := &k.places[(hash^hash>>29)*mix>>(64-knownBits)]
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
