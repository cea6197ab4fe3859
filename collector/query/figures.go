package query

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rollway/rollway/collector/query/pipe"
)

// A shape makes the answer, a struct for package json, of what pipes gave.
type shape func(t *table) (any, error)

// table has the rows that pipes gave, so far or all.
type table struct {
	columns []pipe.Field
	rows    [][]pipe.Value
	step    time.Duration // of time(auto)
	outcome outcome
}

// outcome is what answers with figures have in common.
type outcome struct {
	Scanned   *uint64           `json:"scanned,omitempty"` // nil: not told
	Matched   uint64            `json:"matched"`
	Missing   uint64            `json:"missing,omitempty"`
	Reason    string            `json:"missing_reason,omitempty"`
	Estimates map[string]string `json:"estimates,omitempty"`
	Progress  *progress         `json:"progress,omitempty"` // of a part
}

// progress is in records, which the reader may have passed over.
type progress struct {
	Searched uint64 `json:"searched"`
	Total    uint64 `json:"total"`
}

// figures is the answer with one JSON object. With events, parts come before it:
//
//	event: partial     the object as of now, with progress; at most each partialEvery
//	event: done        the object
//	event: error       {"error":…}: it ends early
//
// What fails before the first event is answered by status, as without events.
type figures struct {
	*rows
	ctx    context.Context
	env    pipe.Env
	pipes  *pipe.Pipeline
	shape  shape
	events bool
	taken  [][]pipe.Value // rows that are final
	next   time.Time      // of a part
	until  time.Time      // the search ends early then; zero: it does not
}

const partialEvery = 250 * time.Millisecond

// serveFigures answers a request by the shape and the pipes that prepare gives it. Its
// parameters are q, since, until and known.
func (a *API) serveFigures(w http.ResponseWriter, r *http.Request, prepare func(*request) (shape, error), known ...string) {
	if !onlyGet(w, r) {
		return
	}
	req, err := a.parseRequest(r, append([]string{"q", "since", "until"}, known...)...)
	f := &figures{events: takesEvents(r)}
	if err == nil {
		f.shape, err = prepare(&req)
	}
	if err != nil {
		writeError(w, http.StatusBadRequest, err)
		return
	}
	ctx, out, done, ok := a.start(w, r, req)
	if !ok {
		return
	}
	defer done()
	f.ctx, f.rows, f.pipes, f.next = ctx, out, req.pipes, out.begun.Add(partialEvery)
	f.env = a.env(ctx, out, &out.mem, nil)
	out.figures = f
	err = a.runPipes(ctx, out, req, func(r *pipe.Row) error { return f.take(&f.taken, r) })
	if err == nil {
		err = f.send("done", f.taken, nil)
	}
	if err != nil {
		f.fail(r, err)
	}
}

// take adds a copy of r to list.
func (f *figures) take(list *[][]pipe.Value, r *pipe.Row) error {
	const valueBytes, rowBytes = 64, 48 // until it is sent
	size := 0
	for _, v := range r.Values {
		size += len(v.Text)
	}
	if err := f.env.Take(rowBytes + valueBytes*len(r.Values) + 3*size); err != nil {
		return fmt.Errorf("the answer holds %d rows: %w; ask for fewer by limit, or narrow the query", len(*list), err)
	}
	text, row := make([]byte, 0, size), make([]pipe.Value, 0, len(r.Values))
	for _, v := range r.Values {
		start := len(text)
		text = append(text, v.Text...)
		row = append(row, pipe.Value{Kind: v.Kind, Text: text[start:]})
	}
	*list = append(*list, row)
	return nil
}

// tick sends a part if it is time for one. Parts take a fifth of the time at most.
func (f *figures) tick(now time.Time) error {
	if !f.until.IsZero() && now.After(f.until) {
		return errEnough
	}
	if !f.events || now.Before(f.next) {
		return nil
	}
	f.next = f.begun.Add(24 * time.Hour) // to make a part calls tick
	held, list := f.mem.n, slices.Clip(f.taken)
	env := f.env
	env.Out = func(r *pipe.Row) error { return f.take(&list, r) }
	err := f.run.Partial(env)
	if err == nil {
		err = f.send("partial", list, &progress{max(f.reached, f.from) - f.from, f.end - f.from})
	}
	if gone := (*clientError)(nil); !errors.As(err, &gone) && f.ctx.Err() == nil {
		err = nil // the end may fit, and tells it otherwise
	}
	f.mem.take(int(held - f.mem.n)) // gives it back
	f.next = now.Add(max(partialEvery, 5*time.Since(now)))
	return err
}

// send sends the object that shape makes of list, as an event or as the answer.
func (f *figures) send(event string, list [][]pipe.Value, p *progress) error {
	t := &table{columns: f.pipes.Columns, rows: list, step: f.run.Step(), outcome: outcome{Matched: f.matched, Estimates: f.run.Estimates(), Progress: p}}
	switch o := &t.outcome; {
	case f.only:
		o.Progress = nil
		if f.damaged {
			o.Reason = mayBeMissing
		}
	default:
		o.Scanned, o.Missing = &f.scanned, f.missing
		if f.missing > 0 {
			o.Reason = oneLine(f.gap)
		}
	}
	answer, err := f.shape(t)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(answer); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	if f.events {
		setEvents(f.w)
		f.buf = fmt.Appendf(f.buf, "event: %s\ndata: ", event)
		text.WriteByte('\n')
	} else {
		setHeader(f.w, "application/json")
	}
	for rest := text.Bytes(); len(rest) > 0; {
		n := min(len(rest), streamBuffer)
		f.buf = append(f.buf, rest[:n]...)
		rest = rest[n:]
		if err := f.stream.flush(); err != nil {
			return err
		}
	}
	return nil
}

// fail tells why the answer ends early.
func (f *figures) fail(r *http.Request, err error) {
	if gone := (*clientError)(nil); !f.started || errors.As(err, &gone) || r.Context().Err() != nil {
		f.finish(r, err)
		return
	}
	f.event("error", map[string]string{"error": err.Error()})
	_ = f.stream.flush() // the last word; the client may be gone
}

// takesEvents reports whether the client asks for events.
func takesEvents(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/event-stream")
}

// addPipes adds pipes, as they are written in text, to those of q, whose rows must be lines.
func (req *request) addPipes(text string) (err error) {
	if req.pipes != nil && !req.pipes.Lines {
		return errors.New("parameter q: its pipes give rows that are no lines; ask /api/stats, or leave out stats, top, patterns and fields")
	}
	req.pipes, err = withPipes(req.query, req.pipes, text, req.now)
	return err
}

// fieldParameter returns the quoted name of a field, which the parameter name gives.
func fieldParameter(name, value string) (string, error) {
	if value == "" || len(value) > MaxName || !utf8.ValidString(value) {
		return "", fmt.Errorf("parameter %s: found %s, expected the name of a field, of at most %d bytes", name, show(value), MaxName)
	}
	return string(appendQuoted(nil, value)), nil
}

// jsonOf returns a value as it is in an answer; null if there is none.
func jsonOf(v pipe.Value) json.RawMessage {
	if v.Kind == pipe.Absent {
		return json.RawMessage("null")
	}
	return v.AppendJSON(nil)
}
