package pipe

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/rollway/rollway/collector/columns"
)

// A moment is a time, since 1970.
type moment struct {
	sec  int64
	nsec int
}

func (m moment) compare(o moment) int {
	return cmp.Or(cmp.Compare(m.sec, o.sec), cmp.Compare(m.nsec, o.nsec))
}

// edge is the value of the first or the last row, by time, that has one. Of several values of
// that time it is the one whose text is least.
type edge struct {
	exact
	noInts
	sign int // 1: of the first row
	at   moment
	best Value
}

// addTimed adds the value that a row has to the state at index i, which takes it with the row's time.
func (s *statsStep) addTimed(i, group int, r *Row) int {
	c := &s.Calls[i]
	at, ok := s.timeOf(c.Time, r)
	e := s.states[i].(*list[edge, *edge]).at(group)
	if !ok || !e.wants(at) {
		return 0
	}
	return e.addAt(at, c.Field.of(r))
}

func (s *statsStep) timeOf(f *Field, r *Row) (at moment, ok bool) {
	if r.table != nil && f.inTable() {
		cells := &r.table.Cells[f.Cells]
		if i := cells.At(r.at); i >= 0 && cells.Kind == columns.Times {
			at = moment{cells.Ints[i] / 1e9, int(cells.Ints[i] % 1e9)}
			if at.nsec < 0 {
				at.sec, at.nsec = at.sec-1, at.nsec+1e9
			}
			return at, true
		}
	}
	v := f.of(r)
	if v.Kind != String {
		return at, false
	}
	at.sec, at.nsec, ok = s.clock.Parse(v.Text)
	return at, ok
}

// wants reports whether a value of that time may be the one.
func (e *edge) wants(at moment) bool {
	return e.best.Kind == Absent || e.sign*at.compare(e.at) <= 0
}

// addAt adds a value of a time that e wants.
func (e *edge) addAt(at moment, v Value) (grown int) {
	if v.Kind == Absent || e.best.Kind != Absent && at == e.at && cmp.Or(bytes.Compare(v.Text, e.best.Text), cmp.Compare(v.Kind, e.best.Kind)) >= 0 {
		return 0
	}
	grown = len(v.Text) - len(e.best.Text)
	e.at, e.best = at, Value{v.Kind, slices.Clone(v.Text)}
	return grown
}

func (e *edge) add(Value) int { panic("not used") }

func (e *edge) merge(other state) int {
	if o := other.(*edge); o.best.Kind != Absent && e.wants(o.at) {
		return e.addAt(o.at, o.best)
	}
	return 0
}

func (e *edge) value([]byte) Value { return e.best }

// few are the different values, of more than maxFew those that come first in their order.
type few struct {
	noInts
	values []Value // in their order
	more   bool
}

// maxFew is how many values the function values gives.
const maxFew = 20

// compareFew is the order of values; 0 for two ways to write one number.
func compareFew(a, b Value) int {
	c := cmp.Or(compare(a, b), cmp.Compare(a.Kind, b.Kind))
	if c == 0 && a.Kind == String {
		c = bytes.Compare(a.Text, b.Text)
	}
	return c
}

func (f *few) add(v Value) (grown int) {
	const valueBytes = 32
	i, found := slices.BinarySearchFunc(f.values, v, compareFew)
	switch {
	case found:
		if old := &f.values[i]; bytes.Compare(v.Text, old.Text) < 0 {
			grown = len(v.Text) - len(old.Text)
			old.Text = slices.Clone(v.Text)
		}
		return grown
	case i == maxFew:
		f.more = true
		return 0
	case len(f.values) == maxFew:
		last := f.values[maxFew-1]
		f.values, f.more = f.values[:maxFew-1], true
		grown = -valueBytes - len(last.Text)
	}
	f.values = slices.Insert(f.values, i, Value{v.Kind, slices.Clone(v.Text)})
	return grown + valueBytes + len(v.Text)
}

func (f *few) merge(other state) (grown int) {
	o := other.(*few)
	f.more = f.more || o.more
	for _, v := range o.values {
		grown += f.add(v)
	}
	return grown
}

// value is a list.
func (f *few) value(buf []byte) Value {
	if len(f.values) == 0 {
		return Value{}
	}
	buf = append(buf, '[')
	for i, v := range f.values {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = v.AppendJSON(buf)
	}
	return Value{Other, append(buf, ']')}
}

func (f *few) estimate() string {
	if f.more {
		return "the first 20"
	}
	return ""
}

func (f *few) spare() int { return 0 }
