package pipe

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
)

// Sort orders rows by its keys. Equal rows stay in the order in which they came.
type Sort struct {
	Keys []Key
	Most int // how many rows are wanted; 0: all
}

// A Key is one field to sort by. Rows without it come last.
type Key struct {
	Field
	Descending bool
}

// heldRow is a row with memory of its own.
type heldRow struct {
	line   []byte
	values []Value // of the row, and of the keys
	keys   []Value
	number int // of the row
	bytes  int
}

type sortStep struct {
	*Sort
	env    *Env
	next   step
	rows   []heldRow // a heap with the last row first, if there is a limit
	number int
	keys   []Value
}

func (s *Sort) start(env *Env, next step) step { return &sortStep{Sort: s, env: env, next: next} }

func (s *sortStep) row(r *Row) error {
	s.keys = s.keys[:0]
	for i := range s.Keys {
		s.keys = append(s.keys, s.Keys[i].of(r))
	}
	return s.add(r)
}

// add adds a row whose keys are s.keys.
func (s *sortStep) add(r *Row) error {
	s.number++
	full := s.Most > 0 && len(s.rows) == s.Most
	if full && s.compare(&heldRow{keys: s.keys, number: s.number}, &s.rows[0]) > 0 {
		return nil
	}
	h := newHeldRow(r, s.keys, s.number)
	if err := s.env.Take(h.bytes); err != nil {
		return fmt.Errorf("sort holds %d rows: %w; sort fewer rows, or have a limit follow sort directly", len(s.rows), err)
	}
	switch {
	case full:
		old := s.rows[0].bytes
		s.rows[0] = h
		heap.Fix(s, 0)
		return s.env.Take(-old)
	case s.Most > 0:
		heap.Push(s, h)
	default:
		s.rows = append(s.rows, h)
	}
	return nil
}

func (s *sortStep) merge(other step) error {
	rows := slices.SortedFunc(slices.Values(other.(*sortStep).rows), func(a, b heldRow) int { return a.number - b.number })
	for _, h := range rows {
		s.keys = append(s.keys[:0], h.keys...)
		if err := s.add(&Row{Line: h.line, Values: h.values}); err != nil {
			return err
		}
	}
	return nil
}

// newHeldRow copies a row.
func newHeldRow(r *Row, keys []Value, number int) heldRow {
	const valueBytes, rowBytes = 32, 128
	size := len(r.Line)
	for _, list := range [][]Value{r.Values, keys} {
		for _, v := range list {
			size += len(v.Text)
		}
	}
	text := append(make([]byte, 0, size), r.Line...)
	values := make([]Value, 0, len(r.Values)+len(keys))
	for _, list := range [][]Value{r.Values, keys} {
		for _, v := range list {
			start := len(text)
			text = append(text, v.Text...)
			values = append(values, Value{v.Kind, text[start:]})
		}
	}
	h := heldRow{values: values[:len(r.Values)], keys: values[len(r.Values):], number: number}
	h.bytes = size + valueBytes*len(values) + rowBytes
	if r.Line != nil {
		h.line = text[:len(r.Line):len(r.Line)]
	}
	return h
}

func (s *sortStep) compare(a, b *heldRow) int {
	for i := range s.Keys {
		c := s.Keys[i].Field.compare(a.keys[i], b.keys[i])
		if s.Keys[i].Descending && a.keys[i].Kind != Absent && b.keys[i].Kind != Absent {
			c = -c
		}
		if c != 0 {
			return c
		}
	}
	return cmp.Compare(a.number, b.number)
}

func (s *sortStep) give(next step) error {
	rows := slices.Clone(s.rows)
	if err := Sorted(s.env.Check, rows, func(a, b heldRow) int { return s.compare(&a, &b) }); err != nil {
		return err
	}
	return giveAll(s.env, next, len(rows), func(i int, r *Row) {
		r.Line, r.Values = rows[i].line, append(r.Values, rows[i].values...)
	})
}

func (s *sortStep) end() error { return finish(s, s.next) }

// For container/heap.
func (s *sortStep) Len() int           { return len(s.rows) }
func (s *sortStep) Less(i, j int) bool { return s.compare(&s.rows[i], &s.rows[j]) > 0 }
func (s *sortStep) Swap(i, j int)      { s.rows[i], s.rows[j] = s.rows[j], s.rows[i] }
func (s *sortStep) Push(x any)         { s.rows = append(s.rows, x.(heldRow)) }
func (s *sortStep) Pop() any {
	last := s.rows[len(s.rows)-1]
	s.rows = s.rows[:len(s.rows)-1]
	return last
}
