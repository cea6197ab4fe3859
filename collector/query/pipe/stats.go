package pipe

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/rollway/rollway/collector/columns"
	"github.com/rollway/rollway/internal/times"
)

// Stats makes one row of each group of rows, in the order of its keys.
type Stats struct {
	Groups []Group
	Calls  []Call
}

// A Group is one key by which rows are grouped. Rows without it are a group, too.
type Group struct {
	Field
	Step time.Duration // of a time: it is cut to the beginning of the step; 0: the value
	Most int           // of a time: it is cut to a step with which so many reach from the first to the last; 0: see Step
}

// A Call is one function of a group's rows.
type Call struct {
	Name     string // of the column
	Function string // one of Functions, "count" or "quantile"
	Field    *Field // nil: of rows; only of count
	Time     *Field // whose order first and last go by; nil for others
	P        float64
}

// statsStep holds the groups.
type statsStep struct {
	*Stats
	env    *Env
	next   step
	keys   columns.Set // of the groups: what appendKey writes of each key, or skipped: see known.numbered
	states []states    // by index in Calls
	key    []byte
	cuts   []cut // by index in Groups
	short  bool  // of memory: quantiles hold less
	held   int   // taken, by groups and known
	clock  times.Cache

	known   known
	groups  []int32 // of the rows of a table
	one     Row     // of them
	into    []int32 // see groupsOf
	found   []int32 // memory
	numbers []int64 // memory
}

func (s *Stats) start(env *Env, next step) step {
	t := &statsStep{Stats: s, env: env, next: next, cuts: make([]cut, len(s.Groups))}
	t.states = t.newStates()
	t.beginSteps()
	return t
}

func (s *statsStep) newStates() (list []states) {
	for i := range s.Calls {
		list = append(list, s.newStatesOf(&s.Calls[i]))
	}
	return list
}

func (s *statsStep) newStatesOf(c *Call) states {
	switch c.Function {
	case "count":
		return new(counts)
	case "quantile":
		memory := new([]float64)
		return newList[quantile](func(q *quantile) { *q = quantile{p: c.P, short: s.short, values: q.values[:0], memory: memory} })
	}
	return Functions[c.Function](c.Field)
}

// beginSteps has each group of a time begin with its first step.
func (s *statsStep) beginSteps() {
	for i := range s.Groups {
		g := &s.Groups[i]
		s.cuts[i] = cut{step: g.Step}
		if g.Most > 0 {
			s.cuts[i].step = steps[0]
		}
	}
}

// reset leaves no group, and keeps memory for others.
func (s *statsStep) reset() {
	s.keys.Reset()
	for _, states := range s.states {
		states.reset()
	}
	s.short, s.held = false, 0
	s.beginSteps()
	s.known.reset()
}

func (s *statsStep) row(r *Row) error {
	group, grown := s.groupOf(r)
	for i := range s.Calls {
		if s.Calls[i].Time != nil {
			grown += s.addTimed(i, group, r)
			continue
		}
		var v Value
		if f := s.Calls[i].Field; f != nil {
			if v = f.of(r); v.Kind == Absent {
				continue
			}
		}
		grown += s.states[i].add(group, v)
	}
	return s.take(grown)
}

// rows is row for rows of a table.
func (s *statsStep) rows(t *Table, rows []int32) error {
	s.groups = slices.Grow(s.groups[:0], len(rows))[:len(rows)]
	k := &s.known
	grown := k.begin(s, t, rows, s.groups)
	from := 0 // of the rows that are not added yet
	added := false
	for i, row := range rows {
		if s.groups[i] == unknown && added {
			s.groups[i] = k.look(i)
		}
		if s.groups[i] != unknown {
			continue
		}
		group, more := 0, 0
		switch {
		case k.numbered != 0 && !k.useless && k.how[i] == k.numbered:
			group, more = s.newNumber(k.columns[0].number(i))
		case k.regroups:
			grown += s.addRows(t, rows[from:i], s.groups[from:i])
			from = i
			if group, more = s.groupOf(s.rowOf(t, row)); k.table == nil { // there are other groups now
				more += k.begin(s, t, rows, s.groups)
			}
		default:
			group, more = s.groupOf(s.rowOf(t, row))
		}
		s.groups[i] = int32(group)
		grown += more + k.note(i, int32(group))
		added = true
	}
	return s.take(grown + s.addRows(t, rows[from:], s.groups[from:]))
}

func (s *statsStep) rowOf(t *Table, row int32) *Row {
	s.one = Row{table: t, at: int(row), text: s.one.text[:0]}
	return &s.one
}

// addRows adds rows to their groups.
func (s *statsStep) addRows(t *Table, rows, groups []int32) (grown int) {
	for i, states := range s.states {
		switch f := s.Calls[i].Field; {
		case s.Calls[i].Time != nil:
			for j, row := range rows {
				grown += s.addTimed(i, int(groups[j]), s.rowOf(t, row))
			}
		case f == nil:
			states.(*counts).addRows(groups)
		case f.inTable():
			grown += states.addCells(&t.Cells[f.Cells], rows, groups, s.rowOf(t, 0))
		}
	}
	return grown
}

// groupOf returns the group of a row, and what it takes if it is new.
func (s *statsStep) groupOf(r *Row) (group, grown int) {
	grown = s.keyOf(r)
	group, more := s.group(s.key)
	return group, grown + more
}

// keyOf makes s.key that of a row. It returns by how much groups have grown that others were merged
// into before.
func (s *statsStep) keyOf(r *Row) (grown int) {
	s.key = s.key[:0]
	for i := range s.Groups {
		g, c := &s.Groups[i], &s.cuts[i]
		v := g.of(r)
		if c.step > 0 {
			at := v
			v = c.of(at)
			if g.Most > 0 && v.Kind != Absent && c.reach(c.start, c.start, g.Most) {
				grown += s.regroup(i)
				v = c.of(at)
			}
		}
		s.key = appendKey(s.key, v)
	}
	return grown
}

// group returns the group of a key, and what it takes if it is new.
func (s *statsStep) group(key []byte) (group, grown int) {
	if n, ok := s.known.numberOf(key); ok {
		s.found, grown = s.addNumbers(s.found[:0], n)
		return int(s.found[0]), grown
	}
	n := s.keys.Len()
	if group = s.keys.Add(key); group == n {
		grown = s.newGroup(key)
	}
	return group, grown
}

// newGroup makes states for a group, and returns what it takes.
func (s *statsStep) newGroup(key []byte) (grown int) {
	for _, states := range s.states {
		states.grow()
	}
	return s.groupBytes(key)
}

// groupBytes is about what a group takes without what its states have grown by.
func (s *statsStep) groupBytes(key []byte) int {
	n := 24 // two words of the set of keys, which grow by half
	if len(key) > 0 {
		n += 32 + len(key)
	}
	for _, states := range s.states {
		n += states.size()
	}
	return n
}

// regroup merges the groups that are in one step of time now, since the steps of the group at
// index i are longer.
func (s *statsStep) regroup(i int) (grown int) {
	keys, states := s.keys, s.states
	s.keys, s.states = columns.Set{}, s.newStates()
	s.known.forget()
	var buf []byte
	for group := range keys.Len() {
		key := keys.At(group)
		values := keysOf(key, len(s.Groups))
		values[i] = s.cuts[i].of(values[i])
		buf = buf[:0]
		for _, v := range values {
			buf = appendKey(buf, v)
		}
		n := s.keys.Len()
		if into := s.keys.Add(buf); into < n {
			grown += s.mergeStates([]int32{int32(into)}, states, group) - s.groupBytes(key)
			continue
		}
		for j := range states {
			s.states[j].move(states[j], group)
		}
		grown += len(buf) - len(key)
	}
	return grown
}

// mergeStates merges the states of the groups of others from the one at from on into those of groups.
func (s *statsStep) mergeStates(groups []int32, others []states, from int) (grown int) {
	for i := range others {
		grown += s.states[i].merge(groups, others[i], from)
	}
	return grown
}

func (s *statsStep) take(grown int) error {
	if grown == 0 {
		return nil
	}
	err := s.env.Take(grown)
	if err != nil && !s.short {
		s.short = true
		for _, states := range s.states {
			grown += states.spare()
		}
		err = s.env.Take(grown)
	}
	if err != nil {
		return fmt.Errorf("stats holds %d groups: %w; group by fields with fewer values or by longer steps of time, or narrow the query by a comparison, since or until", s.keys.Len(), err)
	}
	s.held += grown
	return nil
}

// statsRow is a group with its keys.
type statsRow struct {
	keys  []Value
	group int
}

func (s *statsStep) give(next step) error {
	if s.keys.Len() == 0 && len(s.Groups) == 0 {
		s.group(nil) // no rows are a group
	}
	groups, err := s.mostFrequent(next)
	if err != nil {
		return err
	}
	n := s.keys.Len()
	if groups != nil {
		n = len(groups)
	}
	rowBytes := (64 + 32*len(s.Groups)) * n
	if s.known.numbered != 0 {
		rowBytes += s.known.spelling.Size() * n
	}
	if err := s.take(rowBytes); err != nil {
		return err
	}
	defer s.take(-rowBytes)
	rows := make([]statsRow, n)
	for i := range rows {
		group := i
		if groups != nil {
			group = groups[i]
		}
		rows[i] = statsRow{keysOf(s.keyOfGroup(group), len(s.Groups)), group}
	}
	if err := Sorted(s.env.Check, rows, func(a, b statsRow) int { return s.compare(a.keys, b.keys) }); err != nil {
		return err
	}
	return giveAll(s.env, next, len(rows), func(i int, r *Row) {
		r.Values = append(r.Values, rows[i].keys...)
		for _, states := range s.states {
			start := len(r.text)
			v := states.value(rows[i].group, r.text[start:])
			r.text = r.text[:start]
			if v.Kind != Absent {
				r.text = append(r.text, v.Text...)
				v.Text = r.text[start:]
			}
			r.Values = append(r.Values, v)
		}
	})
}

// compare is the order of groups, by their keys.
func (s *statsStep) compare(a, b []Value) int {
	for i := range s.Groups {
		if c := s.Groups[i].compare(a[i], b[i]); c != 0 {
			return c
		}
	}
	return slices.CompareFunc(a, b, func(x, y Value) int {
		return cmp.Or(cmp.Compare(x.Kind, y.Kind), bytes.Compare(x.Text, y.Text))
	})
}

func (s *statsStep) end() error { return finish(s, s.next) }

// estimates adds the columns that have estimates, and how good these are.
func (s *statsStep) estimates(to map[string]string) {
	for i, states := range s.states {
		for group := range s.keys.Len() {
			if how := states.estimate(group); how != "" {
				to[s.Calls[i].Name] = how
			}
		}
	}
}

// appendKey appends v so that equal values are equal bytes: numbers in one form.
func appendKey(dst []byte, v Value) []byte {
	if v.Kind == Number {
		var buf [64]byte
		if d, ok := v.decimal(); ok {
			v.Text = d.AppendTo(buf[:0])
		}
	}
	dst = binary.AppendUvarint(append(dst, byte(v.Kind)), uint64(len(v.Text)))
	return append(dst, v.Text...)
}

// keysOf reads what appendKey has written n times.
func keysOf(key []byte, n int) []Value {
	keys := make([]Value, n)
	for i := range keys {
		length, m := binary.Uvarint(key[1:])
		start := 1 + m
		end := start + int(length)
		keys[i] = Value{Kind(key[0]), key[start:end:end]}
		key = key[end:]
	}
	return keys
}
