package query

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/rollway/rollway/collector/journal"
)

// ServeTail answers GET /api/tail with lines as they are stored, as server-sent
// events:
//
//	id: <offset>                a line; the id of the next request's Last-Event-ID
//	data: <canonical line>
//
//	event: gap                  records are missing; the stream goes on after them
//	data: {"from":…,"to":…,"missed":…,"reason":"…"}
//
//	event: end                  the stream ends, and why
//	data: {"reason":"…"}
//
// A comment comes as a heartbeat, with an id when the tail has passed lines that
// do not match, unless Only has made the request: then there are no offsets but the ids of
// lines, and the event for a gap has a reason alone. The stream begins after Last-Event-ID, else at from, else with
// since at the oldest record, else at the end.
func (a *API) ServeTail(w http.ResponseWriter, r *http.Request) {
	if !onlyGet(w, r) {
		return
	}
	req, err := a.parseRequest(r, "q", "since", "from")
	if err == nil && req.pipes != nil {
		err = errors.New("a tail takes no pipes: leave out what follows the first |, or ask /api/query")
	}
	if err != nil {
		writeError(w, http.StatusBadRequest, err)
		return
	}
	from, err := a.tailStart(r, req)
	if err != nil {
		writeError(w, http.StatusBadRequest, err)
		return
	}
	ctx, done, ok := a.begin(w, r, a.tails, "tails")
	if !ok {
		return
	}
	defer done()
	a.stats.tails.Add(1)

	leaveBody(r)
	reader := a.src.newReader(from)
	defer reader.Close() // only read from: there is nothing that Close could lose
	setEvents(w)
	t := &tail{
		stream: stream{w: w, control: http.NewResponseController(w), timeout: a.o.WriteTimeout},
		api:    a, query: req.query, reader: reader, only: req.query.tenant != nil, told: from, begun: time.Now(),
	}
	t.turn.Use(a.o.Admission.CPU, a.principal(r))
	t.buf = append(t.buf, "retry: 2000\n: tail"...)
	if !t.only {
		t.buf = fmt.Appendf(t.buf, " from offset %d", from)
	}
	t.buf = append(t.buf, "\n\n"...)
	t.reads = found{at: &t.turn, step: func() bool { return ctx.Err() == nil }}
	req.query.configure(reader, &t.reads)
	defer func() { matched(r, t.sum) }()
	if err = t.flush(); err == nil {
		err = t.run(ctx)
	}
	var gone *clientError
	if errors.As(err, &gone) || r.Context().Err() != nil {
		return
	}
	t.event("end", struct {
		Reason string `json:"reason"`
	}{err.Error()})
	_ = t.flush() // the last word; the client may be gone
}

// tailStart is the offset at which a tail begins.
func (a *API) tailStart(r *http.Request, req request) (uint64, error) {
	if s := r.Header.Get("Last-Event-ID"); s != "" {
		id, err := strconv.ParseUint(s, 10, 64)
		if err != nil || id == math.MaxUint64 {
			return 0, fmt.Errorf("header Last-Event-ID: found %s, expected the id of an event, a number from 0", show(s))
		}
		return id + 1, nil
	}
	switch {
	case req.hasFrom:
		return req.from, nil
	case req.since:
		return a.src.first(), nil
	}
	return a.src.next(), nil
}

// tail is one stream of events.
type tail struct {
	stream
	api      *API
	query    *Query
	reader   reader
	reads    found  // for the reader
	only     bool   // nothing is told of lines that do not match
	told     uint64 // the client knows of everything before this offset
	failures int    // of the reader, in a row
	sum      uint64 // lines that matched
	begun    time.Time
	matching time.Duration // lines, without the time that the client took
}

// Errors of the reader may pass, or turn into a gap: so many are waited out.
const (
	maxFailures = 4
	retryAfter  = 200 * time.Millisecond
)

// run sends events until the client, the API or the source ends, and returns why.
func (t *tail) run(ctx context.Context) error {
	for ctx.Err() == nil {
		frame, ok, err := t.reader.TryNext()
		if err == nil && !ok {
			if len(t.buf) > 0 {
				if err := t.flush(); err != nil {
					return err
				}
			}
			frame, ok, err = t.wait(ctx)
		}
		switch {
		case err != nil:
			if err := t.failed(ctx, err); err != nil {
				return err
			}
		case ok:
			t.failures = 0
			if err := t.frame(ctx, frame); err != nil {
				return err
			}
			if err := t.tick(); err != nil {
				return err
			}
		}
	}
	return context.Cause(ctx)
}

// tick sends what waits while there is more to read.
func (t *tail) tick() error {
	switch idle := time.Since(t.flushed); {
	case len(t.buf) > 0 && idle >= flushEvery:
		return t.flush()
	case idle >= t.api.o.Heartbeat:
		return t.heartbeat()
	}
	return nil
}

// wait is the reader's Next for the time of a heartbeat, which it then sends.
func (t *tail) wait(ctx context.Context) (journal.Frame, bool, error) {
	timed, cancel := context.WithTimeout(ctx, t.api.o.Heartbeat)
	defer cancel()
	frame, err := t.reader.Next(timed)
	if err == nil || !errors.Is(err, timed.Err()) {
		return frame, err == nil, err
	}
	if ctx.Err() != nil {
		return journal.Frame{}, false, nil
	}
	return journal.Frame{}, false, t.heartbeat()
}

func (t *tail) heartbeat() error {
	t.buf = append(t.buf, ": heartbeat\n"...)
	if at := t.reader.Offset(); at > t.told && !t.only {
		// An id without data is no event, but the client keeps it.
		t.appendID(at - 1)
	}
	t.buf = append(t.buf, '\n')
	return t.flush()
}

// failed tells of a gap and waits out other errors of the reader. What it
// returns ends the tail.
func (t *tail) failed(ctx context.Context, err error) error {
	var gap *journal.Gap
	var gone *clientError
	switch {
	case errors.As(err, &gone):
		return err
	case errors.Is(err, io.EOF):
		return errClosing
	case errors.As(err, &gap):
		t.failures = 0
		return t.gap(gap)
	}
	if t.failures++; t.failures > maxFailures {
		return fmt.Errorf("read the journal: %w", err)
	}
	select {
	case <-ctx.Done():
	case <-time.After(retryAfter):
	}
	return nil
}

func (t *tail) gap(gap *journal.Gap) error {
	if t.only {
		if gap.Missed() > 0 && t.api.damage(gap) {
			t.event("gap", map[string]string{"reason": mayBeMissing})
		}
		return t.flush()
	}
	if gap.To > 0 {
		t.appendID(gap.To - 1)
	}
	t.told = gap.To
	t.event("gap", struct {
		From   uint64 `json:"from"`
		To     uint64 `json:"to"`
		Missed uint64 `json:"missed"`
		Reason string `json:"reason"`
	}{gap.From, gap.To, gap.Missed(), gap.Reason})
	if gap.Retention && len(t.buf) < streamBuffer {
		return nil // there may be one before each line
	}
	return t.flush()
}

// frame gathers an event for each line of f that matches.
func (t *tail) frame(ctx context.Context, f journal.Frame) error {
	n := found{at: &t.turn, step: t.reads.step}
	begin, waited := time.Now(), t.waited
	_, err := t.query.findIn(f, math.MaxUint64, &n, func(offset uint64, line []byte) (bool, error) {
		t.appendID(offset)
		t.buf = append(t.buf, "data: "...)
		t.buf = append(t.buf, bytes.TrimSuffix(line, []byte("\n"))...)
		t.buf = append(t.buf, "\n\n"...)
		if len(t.buf) < streamBuffer {
			return true, nil
		}
		return true, t.flush()
	}, func() error { return context.Cause(ctx) })
	t.api.stats.scanned.Add(n.scanned)
	t.api.stats.matched.Add(n.matched)
	t.sum += n.matched
	t.matching += time.Since(begin) - n.away - (t.waited - waited) + t.reads.matching
	t.reads.matching = 0
	if err == nil && t.matching > t.api.o.SearchCPU+time.Since(t.begun)/10 {
		err = fmt.Errorf("this tail has used the processor for %v, which is the limit (timeouts.query_cpu, and a tenth of its duration); use fewer terms", t.matching.Round(time.Millisecond))
	}
	return err
}

func (t *tail) appendID(offset uint64) {
	t.buf = append(t.buf, "id: "...)
	t.buf = strconv.AppendUint(t.buf, offset, 10)
	t.buf = append(t.buf, '\n')
	t.told = offset + 1
}
