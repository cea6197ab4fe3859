package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/rollway/rollway/collector/admission"
	"github.com/rollway/rollway/collector/query/pipe"
)

// ServeQuery answers GET /api/query with the lines that match, as NDJSON in
// ascending order of offsets. It reads a snapshot: up to the journal's end at
// the request's start. docs/QUERY.md has the parameters.
//
//	header   Rollway-Journal  identifies the journal, which its offsets belong to
//	header   Rollway-End      offset after the snapshot
//	header   Rollway-Columns  names of columns, escaped as in paths, if pipes make rows that are no lines
//	trailer  Rollway-Scanned  lines that were looked at
//	trailer  Rollway-Matched  lines that matched; with last, before the cut to the newest
//	trailer  Rollway-Next     from= for the lines after this answer
//	trailer  Rollway-Missing  records that are gone, and why; only if there are any
//	trailer  Rollway-Estimates  columns whose values are estimates, and how good; only if there are any
//	trailer  Rollway-Hint     why nothing was found, if the newest lines tell; a header if the search was short
//	trailer  Rollway-Error    why the answer ends early; only if it does
//
// A request by Only gets of these Rollway-Journal, Rollway-Next, which is from= for the lines
// after the last in the answer, Rollway-Hint, Rollway-Error, and Rollway-Missing without a number for damage.
//
// An answer that failed after its first bytes ends in Rollway-Error if the
// client sent "TE: trailers"; otherwise the connection is aborted, which every
// client sees as an error.
func (a *API) ServeQuery(w http.ResponseWriter, r *http.Request) {
	if !onlyGet(w, r) {
		return
	}
	req, err := a.parseRequest(r, "q", "since", "until", "limit", "last", "order", "from", "to", "offsets")
	offsets := false
	if s := req.values.Get("offsets"); err == nil && s != "" {
		if offsets, err = strconv.ParseBool(s); err != nil {
			err = fmt.Errorf("parameter offsets: found %s, expected true or false", show(s))
		} else if offsets && req.pipes != nil {
			err = errors.New("parameter offsets: what pipes give has none; leave it out, or the pipes")
		}
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
	out.offsets = offsets
	switch {
	case req.pipes != nil:
		err = a.writePiped(ctx, out, req)
	case req.last > 0 || req.byTime:
		err = a.writeHeld(ctx, out, req, out.from, &out.mem)
	default:
		err = a.writeFirst(ctx, out, req, out.from)
	}
	out.setNext(req, err)
	if err == nil && out.matched == 0 {
		most := min(max(time.Since(out.begun), hintShort), hintLong)
		if out.only { // how long the search took is up to the lines of others, too
			most = hintLong
		}
		out.hint = a.hint(ctx, out, req.query, most)
	}
	if err == nil {
		err = out.flush()
	}
	out.finish(r, err)
}

// start begins the answer to a query. If it returns false, the request is answered; else the
// caller calls done at the end.
func (a *API) start(w http.ResponseWriter, r *http.Request, req request) (ctx context.Context, out *rows, done func(), ok bool) {
	ctx, end, ok := a.begin(w, r, a.queries, "queries")
	if !ok {
		return nil, nil, nil, false
	}
	a.stats.queries.Add(1)
	leaveBody(r)
	out = &rows{
		stream: stream{w: w, control: http.NewResponseController(w), timeout: a.o.WriteTimeout},
		api:    a,
		whole:  req.last > 0 || req.byTime || req.pipes != nil && req.pipes.Holds(),
		only:   req.query.tenant != nil,
		mem:    holding{memory: a.memory, p: a.principal(r)},
		end:    min(a.src.next(), req.to),
		from:   a.src.first(),
		begun:  time.Now(),
	}
	out.next = out.end
	if req.hasFrom {
		out.from = req.from
	}
	out.turn.Use(a.o.Admission.CPU, a.principal(r))
	out.later = req.pipes != nil || req.limit == 0 && req.last == 0
	out.turn.SetLow(out.later)
	out.at, out.p, out.few = &out.turn, a.principal(r), req.limit > 0 && !req.byTime
	out.asked = req.hasFrom
	out.lend = func() {
		if out.scan != nil {
			out.scan.pause()
		}
		a.queries.Release(out.p, 1)
	}
	out.reclaim = func() error { return a.reclaim(ctx, out.p) }
	return ctx, out, func() {
		matched(r, out.matched)
		out.mem.release()
		end()
	}, true
}

// reclaim waits until there is a slot for a query of p that has lent its own. Whatever it returns,
// the query has one.
func (a *API) reclaim(ctx context.Context, p *admission.Principal) error {
	const often = 20 * time.Millisecond
	for end := time.Now().Add(a.o.WriteTimeout); !a.queries.Acquire(p, 1); {
		err := cmp.Or(context.Cause(a.ctx), context.Cause(ctx))
		if err == nil && time.Now().After(end) {
			err = fmt.Errorf("the client took nothing for a while, and now other queries have run for %v; go on from the offset in Rollway-Next", a.o.WriteTimeout)
		}
		if err != nil {
			a.queries.Take(p, 1)
			return err
		}
		time.Sleep(often)
	}
	return nil
}

// setNext sets where a client goes on. err is what has ended the search. After an error no line is
// left out that was not given, and who asks again from there gets on, unless nothing is given of an
// answer that is not whole.
func (o *rows) setNext(req request, err error) {
	switch {
	case err != nil && o.whole && o.only:
		o.next = req.from
	case err != nil && o.whole:
		o.next = o.from
	case err != nil && o.only && o.own <= req.from:
		o.next = max(o.from, o.reached) // the only way to get on past the lines of others
	case err != nil && o.only:
		o.next = o.own
	case err != nil:
		o.next = max(o.from, o.reached)
	case o.only:
		o.next = max(req.from, o.after)
	}
	if limit := (*limitError)(nil); errors.As(err, &limit) && !o.whole {
		limit.error = fmt.Errorf("%w; lines from offset %d on were not searched", limit.error, o.next)
	}
}

// writeFirst sends what is found as it is found.
func (a *API) writeFirst(ctx context.Context, out *rows, req request, from uint64) error {
	left := req.limit
	return a.feed(ctx, out, req, from, flushEvery, func(offset uint64, line []byte) (bool, error) {
		if out.offsets {
			out.buf = appendAt(out.buf, offset, line)
		} else {
			out.buf = append(out.buf, line...)
		}
		if left == 1 {
			return false, nil
		}
		left--
		return true, out.flushIfFull()
	})
}

// feed gives the lines that match to take, until it wants no more. What waits in out is
// sent every so often.
func (a *API) feed(ctx context.Context, out *rows, req request, from uint64, every time.Duration, take func(offset uint64, line []byte) (more bool, err error)) error {
	return a.find(ctx, req.query, from, out.end, &out.found, func(offset uint64, line []byte) (bool, error) {
		more, err := take(offset, line)
		if !more {
			out.next = offset + 1
		}
		return more, err
	}, func() error { return out.tick(every) })
}

// patience is how long an answer that is given whole may take until its status is sent, so
// that the client does not give up on it.
const patience = 10 * time.Second

// heldLines returns the lines that are known only at the end of the search.
func (a *API) heldLines(ctx context.Context, out *rows, req request, from uint64, mem *holding) ([][]byte, error) {
	if req.byTime {
		return a.byTime(ctx, out, req, from, mem)
	}
	pieces, err := a.findLast(ctx, req.query, from, out.end, req.last, &out.found, mem, func() error { return out.tick(patience) })
	if errors.Is(err, errLastBytes) {
		err = &limitError{fmt.Errorf("the last %d lines take more than %d bytes; ask for fewer, narrow them by since and until, or read in ascending order with from and limit", req.last, a.o.MaxHeld)}
	}
	return pieces, err
}

func (a *API) writeHeld(ctx context.Context, out *rows, req request, from uint64, mem *holding) error {
	pieces, err := a.heldLines(ctx, out, req, from, mem)
	if err != nil {
		return err
	}
	for _, piece := range pieces {
		for len(piece) > 0 {
			n := min(len(piece), streamBuffer)
			out.buf = append(out.buf, piece[:n]...)
			piece = piece[n:]
			if err := out.flushIfFull(); err != nil {
				return err
			}
		}
	}
	return nil
}

// limitError is the client's fault.
type limitError struct{ error }

// rows is the answer to one query on its way out.
type rows struct {
	stream
	found
	api     *API
	whole   bool      // nothing is given before the search has ended
	only    bool      // nothing is told of lines that are not in the answer
	columns string    // of rows that are no lines
	run     *pipe.Run // nil: no pipes
	mem     holding
	from    uint64 // where the search begins
	end     uint64 // of the snapshot
	next    uint64
	begun   time.Time
	hint    string // why nothing was found

	figures *figures // nil: rows are sent as they come
}

// tick sends what waits if nothing was sent for the time given, and fails when
// the time to search is over. No clock tells the processor time of a goroutine: what is
// taken for it is the time in which it neither read nor waited for its turn, its client or its
// workers, and theirs.
func (o *rows) tick(every time.Duration) error {
	now := time.Now()
	searching := now.Sub(o.begun) - o.waited
	if most := o.api.o.SearchTime; searching > most {
		return &limitError{fmt.Errorf("this query has searched for %v, which is the limit (timeouts.query); narrow it by since and until", most)}
	}
	used := searching - o.away + o.used
	if o.scan != nil {
		used += o.scan.spent()
	}
	if most := o.api.o.SearchCPU; used > most {
		return &limitError{fmt.Errorf("this query has used the processor for %v, which is the limit (timeouts.query_cpu); narrow it by since and until, or use fewer terms", most)}
	}
	if o.figures != nil {
		return o.figures.tick(now)
	}
	last := o.flushed
	if !o.started {
		last = o.begun
	}
	if !o.started && o.whole {
		every = patience
	}
	if now.Sub(last) < every {
		return nil
	}
	return o.flush()
}

func (o *rows) flushIfFull() error {
	if len(o.buf) < streamBuffer {
		return nil
	}
	return o.flush()
}

func (o *rows) flush() error {
	if !o.started {
		h := setHeader(o.w, "application/x-ndjson")
		h.Set("Trailer", "Rollway-Next, Rollway-Missing, Rollway-Estimates, Rollway-Error")
		if o.hint != "" {
			h.Set("Rollway-Hint", o.hint)
		} else {
			h.Add("Trailer", "Rollway-Hint")
		}
		if o.api.id != "" {
			h.Set("Rollway-Journal", o.api.id)
		}
		if o.columns != "" {
			h.Set("Rollway-Columns", o.columns)
		}
		if !o.only {
			h.Set("Rollway-End", strconv.FormatUint(o.end, 10))
			h.Add("Trailer", "Rollway-Scanned, Rollway-Matched")
		}
	}
	return o.stream.flush()
}

// finish ends the answer, err being why it ends early.
func (o *rows) finish(r *http.Request, err error) {
	var gone *clientError
	var limit *limitError
	switch {
	case err == nil:
	case errors.As(err, &gone), r.Context().Err() != nil:
		return // nobody listens
	case o.started:
		if o.flush() != nil {
			return
		}
		if !takesTrailers(r) {
			panic(http.ErrAbortHandler)
		}
		o.w.Header().Set("Rollway-Error", oneLine(err))
	case errors.As(err, &limit):
		writeError(o.w, http.StatusBadRequest, err)
		return
	case errors.Is(err, errBusy):
		o.w.Header().Set("Retry-After", "1")
		writeError(o.w, http.StatusServiceUnavailable, err)
		return
	case errors.Is(err, errClosing):
		o.w.Header().Set("Retry-After", "5")
		writeError(o.w, http.StatusServiceUnavailable, err)
		return
	default:
		writeError(o.w, http.StatusInternalServerError, fmt.Errorf("read the journal: %w", err))
		return
	}
	h := o.w.Header()
	h.Set("Rollway-Next", strconv.FormatUint(o.next, 10))
	if text := o.estimates(); text != "" {
		h.Set("Rollway-Estimates", text)
	}
	if o.hint != "" {
		h.Set("Rollway-Hint", o.hint)
	}
	if o.only {
		if o.damaged {
			h.Set("Rollway-Missing", mayBeMissing)
		}
		return
	}
	h.Set("Rollway-Scanned", strconv.FormatUint(o.scanned, 10))
	h.Set("Rollway-Matched", strconv.FormatUint(o.matched, 10))
	if o.missing > 0 {
		h.Set("Rollway-Missing", fmt.Sprintf("%d; %s", o.missing, oneLine(o.gap)))
	}
}

// takesTrailers tells whether the client said that it reads trailers.
func takesTrailers(r *http.Request) bool {
	for _, v := range r.Header.Values("TE") {
		for token := range strings.SplitSeq(v, ",") {
			if name, _, _ := strings.Cut(token, ";"); strings.EqualFold(strings.TrimSpace(name), "trailers") {
				return true
			}
		}
	}
	return false
}

// oneLine is err as the value of a header.
func oneLine(err error) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, err.Error())
}
