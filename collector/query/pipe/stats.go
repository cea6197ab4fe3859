package pipe

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/rollway/rollway/internal/jsonline"
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

// CheckStep reports whether a Group may have this step.
func CheckStep(step time.Duration) bool {
	return step > 0 && (step%time.Second == 0 || time.Second%step == 0)
}

// statsStep holds the groups.
type statsStep struct {
	*Stats
	env    *Env
	next   step
	groups map[string][]state // by what appendKey writes of each key
	key    []byte
	cuts   []cut // by index in Groups
}

func (s *Stats) start(env *Env, next step) step {
	return &statsStep{Stats: s, env: env, next: next, groups: make(map[string][]state), cuts: make([]cut, len(s.Groups))}
}

func (s *statsStep) row(r *Row) error {
	s.key = s.key[:0]
	for i := range s.Groups {
		g := &s.Groups[i]
		v := g.of(r)
		if g.Step > 0 {
			v = s.cuts[i].of(v, g.Step)
		}
		s.key = appendKey(s.key, v)
	}
	states, grown := s.states(s.key)
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
	const groupBytes = 96
	states := make([]state, 0, len(s.Calls))
	for i := range s.Calls {
		states = append(states, s.Calls[i].new())
	}
	s.groups[string(key)] = states
	return states, groupBytes + len(key) + (stateBytes+16)*len(states)
}

func (s *statsStep) take(grown int) error {
	if grown == 0 {
		return nil
	}
	if err := s.env.Take(grown); err != nil {
		return fmt.Errorf("stats holds %d groups: %w; group by fields with fewer values or by longer steps of time, or narrow the query by a comparison, since or until", len(s.groups), err)
	}
	return nil
}

// merge adds the groups of other, which is of the same Stats.
func (s *statsStep) merge(other step) error {
	for key, from := range other.(*statsStep).groups {
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
	if err := sorted(s.env, rows, func(a, b statsRow) int {
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

// A cut brings times to the beginnings of their steps, and remembers the last.
type cut struct {
	cache      times.Cache
	text       []byte
	start, end int64 // seconds of the step that text is of, if steps are whole seconds
}

func (c *cut) of(v Value, step time.Duration) Value {
	if v.Kind != String {
		return Value{}
	}
	sec, nsec, ok := c.cache.Parse(v.Text)
	switch {
	case !ok:
		return Value{}
	case step < time.Second:
		c.text = jsonline.AppendUnix(c.text[:0], sec, nsec-nsec%int(step))
		return Value{String, c.text}
	case c.start <= sec && sec < c.end:
		return Value{String, c.text}
	}
	const monday, week = 4 * 24 * 60 * 60, 7 * 24 * time.Hour // 1970 began on a Thursday
	seconds, first := int64(step/time.Second), int64(0)
	if step%week == 0 {
		first = monday
	}
	c.start = sec - ((sec-first)%seconds+seconds)%seconds
	c.end = c.start + seconds
	c.text = jsonline.AppendUnix(c.text[:0], c.start, 0)
	return Value{String, c.text}
}
