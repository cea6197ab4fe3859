// Package pipe works on the lines that a query has found: it selects fields, sorts, counts
// and finds patterns. Package query parses pipes and gives them lines.
//
// A [Pipeline] is a row of stages and has no state. A [Run] is one evaluation: each stage
// starts a step, which takes rows and gives rows to the next step.
package pipe

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"
)

// A Row is what one step gives to the next, for the time of the call.
type Row struct {
	Line   []byte  // a canonical line; nil: there is a table, or the columns are all there is
	Values []Value // of the columns

	table *Table // has the line's fields; nil: there is none
	at    int    // the row of the table
	text  []byte // of values with escapes
}

// A Field says where the value of a name is in a row.
type Field struct {
	Name  string
	Index int                      // in Row.Values; -1: in the line alone
	Find  func(line []byte) []byte // its JSON in a line, or nil; nil: it is in Values alone
	Cells int                      // in Table.Cells, of what Find finds
	Level bool                     // its values are names of levels, which have an order
}

// of returns the value of f in r, valid as long as r is.
func (f *Field) of(r *Row) Value {
	if f.Index >= 0 && r.Values[f.Index].Kind != Absent {
		return r.Values[f.Index]
	}
	switch {
	case f.Find == nil:
		return Value{}
	case r.table != nil:
		return r.table.of(f.Cells, r)
	case r.Line == nil:
		return Value{}
	}
	return valueOf(f.Find(r.Line), &r.text)
}

func (f *Field) compare(a, b Value) int {
	if f.Level {
		return compareLevels(a, b)
	}
	return compare(a, b)
}

// Env is what a run gets from its caller. All functions are needed.
type Env struct {
	Out   func(*Row) error      // takes the rows that come out
	Take  func(bytes int) error // accounts for memory; negative: given back; an error ends the run
	Check func() error          // is called now and then; an error ends the run
	Spent *atomic.Int64         // nil, or gets the nanoseconds that Line and End have taken
}

// A Stage is one pipe of a query. It is immutable.
type Stage interface {
	start(env *Env, next step) step
}

// A step is a stage at work.
type step interface {
	row(r *Row) error // errFull: it wants no more
	end() error       // all rows were given
}

// A holder is a step that holds rows back until the end.
type holder interface {
	step
	give(next step) error   // gives what it has so far, and keeps it
	merge(other step) error // adds what other holds, which has seen what comes next
}

// A gatherer is a holder for which the order of rows does not matter.
type gatherer interface {
	holder
	rows(t *Table, rows []int32) error // is row for rows of a table
	reset()                            // leaves nothing, and keeps memory for other rows
	estimates(to map[string]string)    // adds the columns that have estimates, and how good these are
}

// errFull is what a step returns that wants no more rows.
var errFull = errors.New("no more rows are wanted")

// A Pipeline is what follows the filter of a query.
type Pipeline struct {
	Stages  []Stage
	Lines   bool    // rows have lines
	Columns []Field // of the rows that come out
}

// Holds reports whether nothing comes out before the end: rows are counted or sorted.
func (p *Pipeline) Holds() bool {
	return slices.ContainsFunc(p.Stages, holds)
}

// Splits reports whether runs over parts of the lines can be merged: nothing before the stage that
// holds rows depends on how many there were.
func (p *Pipeline) Splits() bool {
	for _, s := range p.Stages {
		switch s.(type) {
		case *Parse, *Fields, *Explode, *From:
		default:
			return holds(s)
		}
	}
	return false
}

// Sums reports whether the order does not matter in which runs that can be merged are: the first stage
// that holds rows is stats or facets.
func (p *Pipeline) Sums() bool {
	i := slices.IndexFunc(p.Stages, holds)
	if i < 0 {
		return false
	}
	_, sorts := p.Stages[i].(*Sort)
	return !sorts
}

// Tables reports whether a run takes rows of tables as well as lines: stages look at fields alone
// until the rows have nothing but columns.
func (p *Pipeline) Tables() bool {
	for _, s := range p.Stages {
		switch s.(type) {
		case *Parse, *From:
			continue
		case *Fields, *Stats, *Facets:
			return true
		default:
			return false
		}
	}
	return false
}

func holds(s Stage) bool {
	switch s.(type) {
	case *Stats, *Facets, *Sort:
		return true
	}
	return false
}

// A Run is one evaluation of a Pipeline. It is for one goroutine at a time.
type Run struct {
	pipeline *Pipeline
	steps    []step
	row      Row
	spent    *atomic.Int64
}

// Start begins a run.
func (p *Pipeline) Start(env Env) *Run {
	return &Run{pipeline: p, steps: p.start(0, &env), spent: env.Spent}
}

// start starts the stages from the one at from on.
func (p *Pipeline) start(from int, env *Env) []step {
	steps := []step{output(env.Out)}
	for _, stage := range slices.Backward(p.Stages[from:]) {
		steps = append(steps, stage.start(env, steps[len(steps)-1]))
	}
	slices.Reverse(steps)
	return steps
}

// Line takes a line, which it does not keep. more is false once no more lines are wanted.
func (r *Run) Line(line []byte) (more bool, err error) {
	if r.spent != nil {
		defer r.spend(time.Now())
	}
	r.row = Row{Line: line, text: r.row.text[:0]}
	return unlessFull(r.steps[0].row(&r.row))
}

// Rows takes rows of a table, which it does not keep. See [Pipeline.Tables].
func (r *Run) Rows(t *Table, rows []int32) (more bool, err error) {
	if r.spent != nil {
		defer r.spend(time.Now())
	}
	if s, ok := r.steps[0].(gatherer); ok {
		return true, s.rows(t, rows)
	}
	for _, row := range rows {
		r.row = Row{table: t, at: int(row), text: r.row.text[:0]}
		if more, err = unlessFull(r.steps[0].row(&r.row)); !more || err != nil {
			return more, err
		}
	}
	return true, nil
}

// Reset makes a run that was merged into another ready for the first line, with the memory that
// it has. It reports whether it can: the first step that holds rows does not sort them.
func (r *Run) Reset() bool {
	for _, s := range r.steps {
		if h, ok := s.(holder); ok {
			g, ok := h.(gatherer)
			if ok {
				g.reset()
			}
			return ok
		}
	}
	return false
}

// End gives out what is held, after the last line.
func (r *Run) End() error {
	if r.spent != nil {
		defer r.spend(time.Now())
	}
	_, err := unlessFull(r.steps[0].end())
	return err
}

func (r *Run) spend(since time.Time) { r.spent.Add(int64(time.Since(since))) }

// Partial gives env what End would give if no more lines came. A pipeline that holds
// nothing back gives nothing.
func (r *Run) Partial(env Env) error {
	for i, s := range r.steps {
		if h, ok := s.(holder); ok {
			_, err := unlessFull(finish(h, r.pipeline.start(i+1, &env)[0]))
			return err
		}
	}
	return nil
}

// Merge adds what other, a run of the same pipeline over the lines that come next, holds.
func (r *Run) Merge(other *Run) error {
	for i, s := range r.steps {
		if h, ok := s.(holder); ok {
			return h.merge(other.steps[i])
		}
	}
	return nil
}

// Estimates returns the columns that have estimates, and how good these are.
func (r *Run) Estimates() map[string]string {
	all := make(map[string]string)
	for _, s := range r.steps {
		if s, ok := s.(gatherer); ok {
			s.estimates(all)
		}
	}
	return all
}

// Step returns the length of the steps of time that the first stats with a Group with Most has
// chosen so far; 0: there is no such stats.
func (r *Run) Step() time.Duration {
	for _, s := range r.steps {
		if s, ok := s.(*statsStep); ok {
			for i := range s.Groups {
				if s.Groups[i].Most > 0 {
					return s.cuts[i].step
				}
			}
		}
	}
	return 0
}

func unlessFull(err error) (more bool, _ error) {
	if err == errFull {
		return false, nil
	}
	return true, err
}

// output is the last step.
type output func(*Row) error

func (o output) row(r *Row) error { return o(r) }
func (o output) end() error       { return nil }

// finish is end for a holder.
func finish(h holder, next step) error {
	if err := h.give(next); err != nil && err != errFull {
		return err
	}
	return next.end()
}

// Sorted sorts list. It calls check now and then, whose error ends it.
func Sorted[T any](check func() error, list []T, compare func(a, b T) int) (err error) {
	const often = 4096
	n := 0
	slices.SortFunc(list, func(a, b T) int {
		if n++; n%often == 0 && err == nil {
			err = check()
		}
		if err != nil {
			return 0 // the rest takes no time
		}
		return compare(a, b)
	})
	return err
}

// giveAll gives n rows to next; fill makes each.
func giveAll(env *Env, next step, n int, fill func(i int, r *Row)) error {
	const often = 256
	var r Row
	for i := range n {
		if i%often == often-1 {
			if err := env.Check(); err != nil {
				return err
			}
		}
		r.Values, r.text = r.Values[:0], r.text[:0]
		fill(i, &r)
		if err := next.row(&r); err != nil {
			return err
		}
	}
	return nil
}
