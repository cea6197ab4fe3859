package pipe

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"time"
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

func (c *Call) new() state {
	switch c.Function {
	case "count":
		return new(count)
	case "quantile":
		return &quantile{p: c.P}
	}
	return Functions[c.Function](c.Field)
}

// statsStep holds the groups.
type statsStep struct {
	*Stats
	env    *Env
	next   step
	groups map[string][]state // by what appendKey writes of each key
	key    []byte
	cuts   []cut // by index in Groups
	short  bool  // of memory: quantiles hold less
}

func (s *Stats) start(env *Env, next step) step {
	t := &statsStep{Stats: s, env: env, next: next, groups: make(map[string][]state), cuts: make([]cut, len(s.Groups))}
	for i := range s.Groups {
		g := &s.Groups[i]
		if t.cuts[i].step = g.Step; g.Most > 0 {
			t.cuts[i].step = steps[0]
		}
	}
	return t
}

func (s *statsStep) row(r *Row) error {
	s.key = s.key[:0]
	grown := 0
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
	states, more := s.states(s.key)
	grown += more
	for i := range s.Calls {
		c := &s.Calls[i]
		var v Value
		if c.Field != nil {
			if v = c.Field.of(r); v.Kind == Absent {
				continue
			}
		}
		grown += states[i].add(v)
	}
	return s.take(grown)
}

// states returns the states of a group, and what it takes if it is new.
func (s *statsStep) states(key []byte) (_ []state, grown int) {
	if states := s.groups[string(key)]; states != nil {
		return states, 0
	}
	states := make([]state, 0, len(s.Calls))
	for i := range s.Calls {
		state := s.Calls[i].new()
		if q, ok := state.(*quantile); ok {
			q.short = s.short
		}
		states = append(states, state)
	}
	s.groups[string(key)] = states
	return states, s.groupBytes(key)
}

// groupBytes is about what a group takes without what its states have grown by.
func (s *statsStep) groupBytes(key []byte) int { return 96 + len(key) + (stateBytes+16)*len(s.Calls) }

// regroup merges the groups that are in one step of time now, since the steps of the group at
// index i are longer.
func (s *statsStep) regroup(i int) (grown int) {
	old := s.groups
	s.groups = make(map[string][]state)
	var buf []byte
	for text, states := range old {
		key := []byte(text)
		keys := keysOf(key, len(s.Groups))
		keys[i] = s.cuts[i].of(keys[i])
		buf = buf[:0]
		for _, v := range keys {
			buf = appendKey(buf, v)
		}
		into := s.groups[string(buf)]
		if into == nil {
			s.groups[string(buf)] = states
			grown += len(buf) - len(key)
			continue
		}
		for j := range into {
			grown += into[j].merge(states[j])
		}
		grown -= s.groupBytes(key)
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
		for _, states := range s.groups {
			for _, state := range states {
				if q, ok := state.(*quantile); ok {
					grown += q.spare()
				}
			}
		}
		err = s.env.Take(grown)
	}
	if err != nil {
		return fmt.Errorf("stats holds %d groups: %w; group by fields with fewer values or by longer steps of time, or narrow the query by a comparison, since or until", len(s.groups), err)
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
	n := 0
	for key, from := range o.groups {
		if n++; n%often == 0 {
			if err := s.env.Check(); err != nil {
				return err
			}
		}
		states, grown := s.states([]byte(key))
		for i := range states {
			grown += states[i].merge(from[i])
		}
		if err := s.take(grown); err != nil {
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
	if len(s.groups) == 0 && len(s.Groups) == 0 {
		s.states(nil) // no rows are a group
	}
	rowBytes := 48 + 32*len(s.Groups)
	if err := s.take(rowBytes * len(s.groups)); err != nil {
		return err
	}
	defer s.env.Take(-rowBytes * len(s.groups))
	rows := make([]statsRow, 0, len(s.groups))
	for key, states := range s.groups {
		rows = append(rows, statsRow{keysOf([]byte(key), len(s.Groups)), states})
	}
	if err := Sorted(s.env.Check, rows, func(a, b statsRow) int {
		for i := range s.Groups {
			if c := s.Groups[i].compare(a.keys[i], b.keys[i]); c != 0 {
				return c
			}
		}
		return slices.CompareFunc(a.keys, b.keys, func(x, y Value) int {
			return cmp.Or(cmp.Compare(x.Kind, y.Kind), bytes.Compare(x.Text, y.Text))
		})
	}); err != nil {
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

func (s *statsStep) end() error { return finish(s, s.next) }

// estimates adds the columns that have estimates, and how good these are.
func (s *statsStep) estimates(to map[string]string) {
	for _, states := range s.groups {
		for i, state := range states {
			if how := state.estimate(); how != "" {
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
