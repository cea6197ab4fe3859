package query

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/rollway/rollway/collector/query/pipe"
	"github.com/rollway/rollway/internal/jsonline"
	"github.com/rollway/rollway/internal/jsonwalk"
)

// writePiped sends the rows that the pipes make of what is found, as they come.
func (a *API) writePiped(ctx context.Context, out *rows, req request) error {
	if req.limit > 0 {
		req.pipes.Stages = limited(req.pipes.Stages, req.limit)
	}
	if !req.pipes.Lines {
		out.columns = columnsHeader(req.pipes.Columns)
	}
	return a.runPipes(ctx, out, req, func(r *pipe.Row) error {
		out.buf = appendRow(out.buf, req.pipes.Columns, r)
		return out.flushIfFull()
	})
}

// runPipes gives take the rows that the pipes make of what is found.
func (a *API) runPipes(ctx context.Context, out *rows, req request, take func(*pipe.Row) error) error {
	defer out.turn.End()
	env := a.env(ctx, out, &out.mem, take)
	env.Spent = req.query.probe.spent()
	out.run = req.pipes.Start(env)
	if err := a.feedPipes(ctx, out, req); err != nil {
		return err
	}
	return out.run.End()
}

// feedPipes gives out.run the lines that are found, or the last of them. It returns in a turn of
// out, for what is to be done at the end.
func (a *API) feedPipes(ctx context.Context, out *rows, req request) (err error) {
	switch {
	case req.last == 0 && !req.byTime && req.pipes.Splits():
		err = a.fold(ctx, out, req)
		out.turn.Begin()
		return err
	case req.last == 0 && !req.byTime:
		err = a.feed(ctx, out, req, out.from, flushEvery, func(_ uint64, line []byte) (bool, error) { return out.run.Line(line) })
		out.turn.Begin()
		return err
	}
	pieces, err := a.heldLines(ctx, out, req, out.from, &out.mem)
	out.turn.Begin()
	if err != nil {
		return err
	}
	check := a.check(ctx, out)
	for _, piece := range pieces {
		for line := range bytes.Lines(piece) {
			if more, err := out.run.Line(line); err != nil || !more {
				return err
			}
			if err := check(); err != nil {
				return err
			}
		}
	}
	return nil
}

const (
	foldBytes = 2 << 20 // that a run of a worker holds before it is merged, unless there is more memory
	foldSpans = 8       // that a run is of, if there is one for each part: to merge takes as long as to count
)

// fold has workers run the pipes over the lines that match, and merges what their runs hold into
// out.run: those of workers at the end, or, if their order matters or somebody sees what there is so far,
// those of a few spans each, in the order of the lines. A run is charged while it waits to be merged. What
// counts tell is not read.
func (a *API) fold(ctx context.Context, out *rows, req request) error {
	left, err := a.count(ctx, out, req)
	for _, o := range left {
		if err == nil {
			err = a.foldStretch(ctx, out, req, o)
		}
	}
	return err
}

func (a *API) foldStretch(ctx context.Context, out *rows, req request, o stretch) error {
	s := a.newScan(o.query, o.from, o.to, false, &out.found)
	s.most, s.early, s.wide = foldBytes, flushEvery, foldSpans
	if f := out.figures; req.pipes.Sums() && (f == nil || !f.events && f.until.IsZero()) {
		s.sums, s.wide = true, 0
		s.setShare(int64(a.o.MaxHeld) - out.mem.n)
	}
	s.fresh = func(p *part) {
		if p.bytes = 0; p.run != nil && p.run.Reset() {
			return
		}
		p.run = req.pipes.Start(pipe.Env{
			Out:   func(*pipe.Row) error { return nil },
			Take:  func(n int) error { p.bytes += n; return nil },
			Check: func() error { return nil },
			Spent: req.query.probe.spent(),
		})
	}
	s.keep = func(p *part, _ uint64, line []byte) error {
		_, err := p.run.Line(line)
		return err
	}
	if req.query.fields != nil && req.pipes.Tables() {
		s.steps = req.pipes.Steps(len(req.query.fields))
		s.rows = func(p *part, b *batch) error {
			_, err := p.run.Rows(&b.table.Table, b.rows)
			return err
		}
	}
	return s.run(ctx, &out.found, func(p *part) (bool, error) {
		if p.run != nil && (p.given || p.matched > 0) {
			if err := out.run.Merge(p.run); err != nil {
				return false, err
			}
		}
		if p.given {
			s.setShare(int64(a.o.MaxHeld) - out.mem.n)
		} else {
			a.add(&out.found, &p.found)
		}
		if p.run != nil && p.bytes <= foldBytes/2 {
			s.recycle(p)
		}
		return true, nil
	}, func() error { return out.tick(flushEvery) })
}

// env is what a run of pipes gets.
func (a *API) env(ctx context.Context, out *rows, mem *holding, take func(*pipe.Row) error) pipe.Env {
	return pipe.Env{
		Out: take,
		Take: func(n int) error {
			if n > 0 && mem.n+int64(n) > int64(a.o.MaxHeld) {
				return &limitError{fmt.Errorf("one query may hold %d bytes (limits.max_query)", a.o.MaxHeld)}
			}
			return mem.take(n)
		},
		Check: a.check(ctx, out),
	}
}

// check returns a function to call between pieces of work outside of a search.
func (a *API) check(ctx context.Context, out *rows) func() error {
	return func() error {
		if err := cmp.Or(context.Cause(a.ctx), context.Cause(ctx)); err != nil {
			return err
		}
		out.wait(out.turn.Yield)
		return out.tick(flushEvery)
	}
}

// estimates is the text of Rollway-Estimates.
func (o *rows) estimates() string {
	if o.run == nil {
		return ""
	}
	var list []string
	for name, how := range o.run.Estimates() {
		list = append(list, url.PathEscape(name)+" ("+how+")")
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

func columnsHeader(columns []pipe.Field) string {
	var names []string
	for _, c := range columns {
		names = append(names, url.PathEscape(c.Name))
	}
	return strings.Join(names, ",")
}

// appendRow appends a row as a line of JSON. The columns of a line are in attrs.
func appendRow(dst []byte, columns []pipe.Field, r *pipe.Row) []byte {
	if r.Line == nil {
		dst = appendColumns(append(dst, '{'), columns, r)
		return append(dst, "}\n"...)
	}
	if !slices.ContainsFunc(r.Values, func(v pipe.Value) bool { return v.Kind != pipe.Absent }) {
		return append(dst, r.Line...)
	}
	w := jsonwalk.Members(r.Line, 0)
	for w.Next() {
		if w.Is("attrs") && w.Kind() == '{' { // it is the last member
			dst = append(dst, r.Line[:w.Name.Start]...)
			return append(appendColumns(appendOthers(dst, columns, r, w.Value.Start), columns, r), "}}\n"...)
		}
	}
	dst = append(dst, bytes.TrimSuffix(bytes.TrimSuffix(r.Line, []byte("\n")), []byte("}"))...)
	dst = append(dst, `,"attrs":{`...)
	return append(appendColumns(dst, columns, r), "}}\n"...)
}

// appendOthers appends attrs, which begin at r.Line[at], without their end and without what
// columns replace.
func appendOthers(dst []byte, columns []pipe.Field, r *pipe.Row, at int) []byte {
	dst = append(dst, `"attrs":{`...)
	w := jsonwalk.Members(r.Line, at)
	for w.Next() {
		name, _ := jsonwalk.Text(w.RawName(), nil)
		i := slices.IndexFunc(columns, func(f pipe.Field) bool { return f.Name == string(name) })
		if i >= 0 && r.Values[i].Kind != pipe.Absent {
			continue
		}
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, w.RawName()...), ':'), w.RawValue()...)
	}
	return dst
}

// appendColumns appends the members of columns that are there.
func appendColumns(dst []byte, columns []pipe.Field, r *pipe.Row) []byte {
	for i, v := range r.Values {
		if v.Kind != pipe.Absent {
			dst = v.AppendJSON(jsonline.AppendKey(dst, columns[i].Name))
		}
	}
	return dst
}
