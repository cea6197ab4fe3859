package pipe

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/rollway/rollway/collector/columns"
)

// Facets counts the values of each of Fields. It gives rows with the name of a field, one of its Most
// most frequent values, how many rows have that, and how many other values there are. Rows without the
// field have a value, too.
type Facets struct {
	Fields []Field
	Most   int
}

type facetsStep struct {
	*Facets
	env    *Env
	next   step
	facets []facet // of Fields
	one    Row
}

func (f *Facets) start(env *Env, next step) step {
	return &facetsStep{Facets: f, env: env, next: next, facets: make([]facet, len(f.Fields))}
}

func (s *facetsStep) reset() {
	for i := range s.facets {
		s.facets[i].reset()
	}
}

func (s *facetsStep) row(r *Row) error {
	grown := 0
	for i := range s.facets {
		f := &s.facets[i]
		f.counts[f.find(s.Fields[i].of(r))]++
		grown += f.grown()
	}
	return s.take(grown)
}

// rows is row for rows of a table.
func (s *facetsStep) rows(t *Table, rows []int32) error {
	grown := 0
	for i := range s.facets {
		f, field := &s.facets[i], &s.Fields[i]
		if field.inTable() {
			f.addCells(t, &t.Cells[field.Cells], rows, &s.one)
			grown += f.grown()
			continue
		}
		for _, row := range rows {
			s.one = Row{table: t, at: int(row), text: s.one.text[:0]}
			f.counts[f.find(field.of(&s.one))]++
		}
		grown += f.grown()
	}
	return s.take(grown)
}

func (s *facetsStep) take(grown int) error {
	if grown == 0 {
		return nil
	}
	if err := s.env.Take(grown); err != nil {
		return fmt.Errorf("the values of %d fields: %w; ask for fewer fields", len(s.Fields), err)
	}
	return nil
}

// merge adds the counts of other, which is of the same Facets.
func (s *facetsStep) merge(other step) error {
	grown := 0
	for i := range s.facets {
		if err := s.env.Check(); err != nil {
			return err
		}
		s.facets[i].merge(&other.(*facetsStep).facets[i])
		grown += s.facets[i].grown()
	}
	return s.take(grown)
}

func (s *facetsStep) give(next step) error {
	type counted struct {
		value Value
		n     int64
	}
	var r Row
	for i := range s.facets {
		f := &s.facets[i]
		list := make([]counted, len(f.counts))
		for key, n := range f.counts {
			list[key] = counted{keysOf(f.keys.At(key), 1)[0], n}
		}
		if err := Sorted(s.env.Check, list, func(a, b counted) int {
			return cmp.Or(cmp.Compare(b.n, a.n), compare(a.value, b.value), cmp.Compare(a.value.Kind, b.value.Kind), bytes.Compare(a.value.Text, b.value.Text))
		}); err != nil {
			return err
		}
		shown := list[:min(s.Most, len(list))]
		more := strconv.AppendInt(nil, int64(len(list)-len(shown)), 10)
		for _, c := range shown {
			r.text = strconv.AppendInt(r.text[:0], c.n, 10)
			r.Values = append(r.Values[:0], Value{String, []byte(s.Fields[i].Name)}, c.value, Value{Number, r.text}, Value{Number, more})
			if err := next.row(&r); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *facetsStep) end() error { return finish(s, s.next) }

// estimates adds the fields some of whose values were forgotten.
func (s *facetsStep) estimates(to map[string]string) {
	for i := range s.facets {
		if less := s.facets[i].less; less > 0 {
			to[s.Fields[i].Name] = fmt.Sprintf("each count may be up to %d too low", less)
		}
	}
}

// A facet counts the values of one field. If there are many it forgets those that are rare, so that no
// count is too low by more than less (Misra and Gries, Finding Repeated Elements, 1982; Agarwal and
// others, Mergeable Summaries, 2012).
type facet struct {
	keys   columns.Set // of values, see appendKey
	counts []int64     // of keys
	size   int         // bytes of keys
	held   int         // taken
	less   int64

	// Keys plus 1 by what tells the values of a table apart, plus 1; first comes that of rows without a
	// value. 0: it is not known.
	known    []int32
	table    *Table
	round    uint64 // Table.Round
	spelling []byte // how Ints are to be read that known is of

	key    []byte  // memory
	values []int32 // memory
	into   []int32 // memory
}

const (
	maxValues     = 10_000  // of a facet
	maxValueBytes = 2 << 20 // of a facet
	maxInts       = 1 << 14 // of numbers in a table, whose keys are remembered
)

// find returns the key of a value.
func (f *facet) find(v Value) int {
	f.key = appendKey(f.key[:0], v)
	key := f.keys.Add(f.key)
	if key == len(f.counts) {
		f.counts = append(f.counts, 0)
		f.size += len(f.key)
	}
	return key
}

// grown is to be called after values were added. It returns by how much f has grown.
func (f *facet) grown() int {
	const keyBytes = 56
	if len(f.counts) > maxValues || f.size > maxValueBytes {
		f.forget()
	}
	before := f.held
	f.held = f.size + keyBytes*len(f.counts) + 4*len(f.known)
	return f.held - before
}

// forget takes the median count from all, and forgets what has none left: half of the values at least.
func (f *facet) forget() {
	sorted := slices.Sorted(slices.Values(f.counts))
	median := sorted[len(sorted)/2]
	keys, counts := f.keys, f.counts
	f.keys, f.counts, f.size = columns.Set{}, f.counts[:0:0], 0
	for key, n := range counts {
		if n > median {
			f.keys.Add(keys.At(key))
			f.counts = append(f.counts, n-median)
			f.size += len(keys.At(key))
		}
	}
	f.less += median
	clear(f.known)
}

func (f *facet) merge(o *facet) {
	f.into = f.keys.AddAll(f.into[:0], &o.keys, 0, o.keys.Len())
	for i, key := range f.into {
		if int(key) == len(f.counts) {
			f.counts = append(f.counts, 0)
			f.size += len(o.keys.At(i))
		}
		f.counts[key] += o.counts[i]
	}
	f.less += o.less
}

func (f *facet) reset() {
	f.keys.Reset()
	f.counts, f.size, f.held, f.less = f.counts[:0], 0, 0, 0
	clear(f.known)
}

// addCells adds the values that rows of a table have. It may use r.
func (f *facet) addCells(t *Table, c *columns.Cells, rows []int32, r *Row) {
	if t != f.table || t.Round != f.round {
		f.begin(t, c)
	}
	if c.Fixed() && len(rows) > 0 {
		f.counts[f.keyOf(t, c, c.At(int(rows[0])), r)] += int64(len(rows))
		return
	}
	ints, known := c.Ints, f.known
	for _, at := range c.Values(&f.values, rows) {
		slot := uint64(0)
		if at >= 0 {
			if ints != nil {
				slot = uint64(ints[at])
			}
			slot = min(slot, maxInts) + 1
		}
		if slot < uint64(len(known)) && known[slot] > 0 {
			f.counts[known[slot]-1]++
			continue
		}
		key := f.keyOf(t, c, int(at), r)
		f.counts[key]++
		if slot <= maxInts && c.Kind != columns.Texts {
			f.known = append(f.known, make([]int32, max(0, int(slot)+1-len(f.known)))...)
			known = f.known
			known[slot] = int32(key + 1)
		}
	}
}

// begin is for the cells of another table.
func (f *facet) begin(t *Table, c *columns.Cells) {
	f.table, f.round = t, t.Round
	f.key = append(append(f.key[:0], byte(c.Kind), byte(c.Digits)), c.Spelling...)
	local := c.Kind == columns.Texts || c.Kind == columns.Same || c.Kind == columns.Indexes
	if local || !bytes.Equal(f.key, f.spelling) {
		f.known = f.known[:0]
	}
	f.spelling = append(f.spelling[:0], f.key...)
}

// keyOf returns the key of a value of cells; -1: of rows without one.
func (f *facet) keyOf(t *Table, c *columns.Cells, at int, r *Row) int {
	if at < 0 {
		return f.find(Value{})
	}
	r.text = r.text[:0]
	return f.find(t.value(c, at, r))
}
