package pipe

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/rollway/rollway/collector/columns"
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
	P        float64
}

// statsStep holds the groups.
type statsStep struct {
	*Stats
	env   *Env
	next  step
	keys  columns.Set // of the groups: what appendKey writes of each key
	list  []state     // of each group, one for each of Calls
	key   []byte
	cuts  []cut // by index in Groups
	short bool  // of memory: quantiles hold less
	known known

	counts    slab[count]
	quantiles slab[quantile]
}

func (s *Stats) start(env *Env, next step) step {
	t := &statsStep{Stats: s, env: env, next: next, cuts: make([]cut, len(s.Groups))}
	for i := range s.Groups {
		g := &s.Groups[i]
		if t.cuts[i].step = g.Step; g.Most > 0 {
			t.cuts[i].step = steps[0]
		}
	}
	return t
}

func (s *statsStep) row(r *Row) error {
	group, grown := -1, 0
	var place *knownGroup
	if r.table != nil {
		if place = s.known.find(s, r); place != nil && place.round == s.known.round {
			group = place.group
		}
	}
	if group < 0 {
		group, grown = s.groupOf(r)
		s.known.note(place, group)
	}
	states := s.states(group)
	for i := range s.Calls {
		c := &s.Calls[i]
		switch {
		case c.Field == nil:
			grown += states[i].add(Value{})
		case r.table != nil && c.Field.inTable():
			grown += addCell(states[i], c.Field, r)
		default:
			if v := c.Field.of(r); v.Kind != Absent {
				grown += states[i].add(v)
			}
		}
	}
	return s.take(grown)
}

// groupOf returns the group of a row, and what it takes if it is new.
func (s *statsStep) groupOf(r *Row) (group, grown int) {
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
	group, more := s.group(s.key)
	return group, grown + more
}

// group returns the group of a key, and what it takes if it is new.
func (s *statsStep) group(key []byte) (group, grown int) {
	if group = s.keys.Add(key); group*len(s.Calls) < len(s.list) {
		return group, 0
	}
	for i := range s.Calls {
		s.list = append(s.list, s.new(&s.Calls[i]))
	}
	return group, s.groupBytes(key)
}

func (s *statsStep) new(c *Call) state {
	switch c.Function {
	case "count":
		return s.counts.new()
	case "quantile":
		q := s.quantiles.new()
		q.p, q.short = c.P, s.short
		return q
	}
	return Functions[c.Function](c.Field)
}

// states returns the states of a group.
func (s *statsStep) states(group int) []state {
	n := len(s.Calls)
	return s.list[group*n : (group+1)*n : (group+1)*n]
}

// groupBytes is about what a group takes without what its states have grown by.
func (s *statsStep) groupBytes(key []byte) int { return 96 + len(key) + (stateBytes+16)*len(s.Calls) }

// A slab has memory for states, some at a time.
type slab[T any] struct {
	free []T
	size int
}

func (s *slab[T]) new() *T {
	if len(s.free) == 0 {
		s.size = min(max(1, 2*s.size), 256)
		s.free = make([]T, s.size)
	}
	state := &s.free[0]
	s.free = s.free[1:]
	return state
}

// regroup merges the groups that are in one step of time now, since the steps of the group at
// index i are longer.
func (s *statsStep) regroup(i int) (grown int) {
	old := statsStep{Stats: s.Stats, keys: s.keys, list: s.list}
	s.keys, s.list = columns.Set{}, nil
	s.known.forget()
	var buf []byte
	for group := range old.keys.Len() {
		key := old.keys.At(group)
		keys := keysOf(key, len(s.Groups))
		keys[i] = s.cuts[i].of(keys[i])
		buf = buf[:0]
		for _, v := range keys {
			buf = appendKey(buf, v)
		}
		into := s.keys.Add(buf)
		if into*len(s.Calls) == len(s.list) {
			s.list = append(s.list, old.states(group)...)
			grown += len(buf) - len(key)
			continue
		}
		grown += mergeStates(s.states(into), old.states(group)) - s.groupBytes(key)
	}
	return grown
}

func mergeStates(into, from []state) (grown int) {
	for i := range into {
		grown += into[i].merge(from[i])
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
		for _, state := range s.list {
			if q, ok := state.(*quantile); ok {
				grown += q.spare()
			}
		}
		err = s.env.Take(grown)
	}
	if err != nil {
		return fmt.Errorf("stats holds %d groups: %w; group by fields with fewer values or by longer steps of time, or narrow the query by a comparison, since or until", s.keys.Len(), err)
	}
	return nil
}

// merge adds the groups of other, which is of the same Stats.
func (s *statsStep) merge(other step) error {
	const often = 256
	o := other.(*statsStep)
	for i := range s.Groups {
		a, b := &s.cuts[i], &o.cuts[i]
		if s.Groups[i].Most == 0 || !b.reached {
			continue
		}
		if a.reach(b.first, b.last, s.Groups[i].Most) {
			if err := s.take(s.regroup(i)); err != nil {
				return err
			}
		}
		if b.step != a.step {
			b.use(a.step)
			if err := o.take(o.regroup(i)); err != nil {
				return err
			}
		}
	}
	for from := range o.keys.Len() {
		if from%often == often-1 {
			if err := s.env.Check(); err != nil {
				return err
			}
		}
		group, grown := s.group(o.keys.At(from))
		if err := s.take(grown + mergeStates(s.states(group), o.states(from))); err != nil {
			return err
		}
	}
	return nil
}

// statsRow is a group with its keys.
type statsRow struct {
	keys   []Value
	states []state
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
	rowBytes := (48 + 32*len(s.Groups)) * n
	if err := s.take(rowBytes); err != nil {
		return err
	}
	defer s.env.Take(-rowBytes)
	rows := make([]statsRow, n)
	for i := range rows {
		group := i
		if groups != nil {
			group = groups[i]
		}
		rows[i] = statsRow{keysOf(s.keys.At(group), len(s.Groups)), s.states(group)}
	}
	if err := Sorted(s.env.Check, rows, func(a, b statsRow) int { return s.compare(a.keys, b.keys) }); err != nil {
		return err
	}
	return giveAll(s.env, next, len(rows), func(i int, r *Row) {
		r.Values = append(r.Values, rows[i].keys...)
		for _, state := range rows[i].states {
			start := len(r.text)
			v := state.value(r.text[start:])
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
	for i, state := range s.list {
		if how := state.estimate(); how != "" {
			to[s.Calls[i%len(s.Calls)].Name] = how
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
