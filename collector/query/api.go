package query

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rollway/rollway/collector/admission"
	"github.com/rollway/rollway/collector/filters"
	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/collector/query/pipe"
)

// Options of an API. The zero value is the recommended setting.
type Options struct {
	Admission *admission.Controller // shares queries, tails and processors; default: one of the API's own

	MaxQueries   int           // queries at a time; one principal gets two thirds of them, more are refused; default 12
	MaxTails     int           // tails at a time, likewise; default 150
	MaxLast      int           // most lines that last= may ask for; default 100,000
	MaxHeld      int           // most bytes that one query may hold in memory, with last= or pipes; default 64 MiB
	MaxMemory    int           // most bytes that all queries may hold together; one principal gets two thirds of them; more are answered 503; default 256 MiB
	Heartbeat    time.Duration // a tail without lines sends a comment this often; default 15 s
	SearchTime   time.Duration // a query that has searched for so long ends, the time not counted that its client took for the lines; default 2 min
	SearchCPU    time.Duration // the same for the part of that time in which it matched lines; a tail gets a tenth of its duration more; default 30 s
	WriteTimeout time.Duration // a client that takes nothing for so long is cut off; default 30 s

	ReadAs func(name string) (stored string, rare bool) // where receivers store what senders call name, for hints; rare: few of them do; default: they store it as it is
}

func (o *Options) check() error {
	if min(o.MaxQueries, o.MaxTails, o.MaxLast, o.MaxHeld, o.MaxMemory) < 0 || min(o.Heartbeat, o.SearchTime, o.SearchCPU, o.WriteTimeout) < 0 {
		return errors.New("query options: a limit or a time is negative; use 0 for the default")
	}
	o.MaxQueries = cmp.Or(o.MaxQueries, 12)
	o.MaxTails = cmp.Or(o.MaxTails, 150)
	o.MaxLast = cmp.Or(o.MaxLast, 100_000)
	o.MaxHeld = cmp.Or(o.MaxHeld, 64<<20)
	o.MaxMemory = cmp.Or(o.MaxMemory, 256<<20)
	if o.ReadAs == nil {
		o.ReadAs = func(string) (string, bool) { return "", false }
	}
	o.Heartbeat = cmp.Or(o.Heartbeat, 15*time.Second)
	o.SearchTime = cmp.Or(o.SearchTime, 2*time.Minute)
	o.SearchCPU = cmp.Or(o.SearchCPU, 30*time.Second)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, 30*time.Second)
	if o.Admission == nil {
		o.Admission = admission.New()
	}
	return nil
}

// API serves a journal over HTTP. It is safe for concurrent use; its owner closes it.
//
//  1. Every request has a reader of its own: a slow client delays no other.
//  2. Lines go out exactly as they are stored, in the order of their offsets.
//  3. The client is told what is missing or failed: by the status, or once lines were
//     sent by a trailer, an event or an aborted connection.
type API struct {
	src     source
	id      string // of the journal; "": unknown
	o       Options
	queries *admission.Resource // one for each query that runs
	tails   *admission.Resource // one for each tail that runs
	memory  *admission.Resource // bytes that queries hold
	nobody  *admission.Principal
	ctx     context.Context
	cancel  context.CancelCauseFunc

	stats struct {
		queries, tails, refused, scanned, matched atomic.Uint64
	}
}

var errClosing = errors.New("the collector is shutting down")

// source is the journal, except in tests.
type source struct {
	first, next func() uint64
	span        func(offset uint64, minTime, maxTime int64) (first, end uint64)
	exclude     func(offset uint64, minTime, maxTime int64, t *filters.Test, turn journal.Turn, ended func() bool) (first, end uint64, parts []journal.Excluded, err error)
	newReader   func(from uint64) reader
	segments    func(minimum, maximum int64) (in, all int)
	counts      func(offset uint64, minTime, maxTime int64, step time.Duration) (c *journal.Counts, first, end uint64)
}

// reader is a *journal.Reader, except in tests.
type reader interface {
	SetTimeRange(minimum, maximum int64)
	SetEnd(offset uint64)
	SetTenant(name string)
	SetSeen(*journal.Seen)
	SetUnpack(unpack journal.Unpack, ahead bool)
	Next(ctx context.Context) (journal.Frame, error)
	TryNext() (journal.Frame, bool, error)
	Offset() uint64
	Seek(offset uint64) error
	Close() error
}

// New returns an API over j.
func New(j *journal.Journal, o Options) (*API, error) {
	a, err := newAPI(source{j.First, j.Next, j.Span, j.Exclude, func(from uint64) reader { return j.NewReader(from) }, j.SegmentsIn, j.Counts}, o)
	if err == nil {
		a.id = j.ID()
	}
	return a, err
}

func newAPI(src source, o Options) (*API, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	c := o.Admission
	a := &API{src: src, o: o, queries: c.Resource(admission.Queries), tails: c.Resource(admission.Tails), memory: c.Resource(admission.QueryMemory), nobody: c.Named("", 1)}
	a.queries.SetLimit(int64(o.MaxQueries))
	a.tails.SetLimit(int64(o.MaxTails))
	a.memory.SetLimit(int64(o.MaxMemory))
	a.ctx, a.cancel = context.WithCancelCause(context.Background())
	return a, nil
}

// Handlers returns what answers GET, by path. docs/QUERY.md has the parameters.
func (a *API) Handlers() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"/api/query":   a.ServeQuery,
		"/api/tail":    a.ServeTail,
		"/api/hits":    a.serveHits,
		"/api/context": a.serveContext,
		"/api/stats":   a.serveStats,
		"/api/explain": a.serveExplain,
		"/api/fields":  a.serveFields,
		"/api/facets":  a.serveFacets,
	}
}

// Close ends all queries and tails, each with word to its client, and all later
// ones at once. It does not wait; http.Server.Shutdown does, for which it is
// meant to be registered with http.Server.RegisterOnShutdown.
func (a *API) Close() error {
	a.cancel(errClosing)
	return nil
}

// Stats are counters since New, and what runs now.
type Stats struct {
	Queries, Tails               uint64 // begun
	Refused                      uint64 // answered 503
	Scanned, Matched             uint64 // lines looked at and lines found, by queries and tails
	RunningQueries, RunningTails int
}

// Stats returns the current figures. It never blocks.
func (a *API) Stats() Stats {
	return Stats{
		Queries: a.stats.queries.Load(), Tails: a.stats.tails.Load(), Refused: a.stats.refused.Load(),
		Scanned: a.stats.scanned.Load(), Matched: a.stats.matched.Load(),
		RunningQueries: int(a.queries.Used()), RunningTails: int(a.tails.Used()),
	}
}

// begin takes a token and returns the request's context, which also ends with
// the API. If it returns false, the request is answered.
func (a *API) begin(w http.ResponseWriter, r *http.Request, tokens *admission.Resource, what string) (context.Context, func(), bool) {
	refuse := func(status int, after string, err error) (context.Context, func(), bool) {
		a.stats.refused.Add(1)
		w.Header().Set("Retry-After", after)
		writeError(w, status, err)
		return nil, nil, false
	}
	if a.ctx.Err() != nil {
		return refuse(http.StatusServiceUnavailable, "5", errClosing)
	}
	p := a.principal(r)
	if !tokens.Acquire(p, 1) {
		if tokens.Used() >= tokens.Limit() {
			return refuse(http.StatusServiceUnavailable, "1", fmt.Errorf("%d %s are running, which is the limit; try again later", tokens.Limit(), what))
		}
		return refuse(http.StatusTooManyRequests, "1", fmt.Errorf("%d %s of yours are running, which is your share of %d; try again later", tokens.Of(p), what, tokens.Limit()))
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	stop := context.AfterFunc(a.ctx, func() { cancel(errClosing) })
	return ctx, func() {
		stop()
		cancel(nil)
		tokens.Release(p, 1)
	}, true
}

// principal is who pays for a request.
func (a *API) principal(r *http.Request) *admission.Principal {
	if p := admission.FromContext(r.Context()); p != nil {
		return p
	}
	return a.nobody
}

// onlyKey is where Only leaves a tenant in a request's context.
type onlyKey struct{}

// Only returns r as one that finds the lines of a tenant alone: see journal.TenantOf. Its
// answer tells nothing of other lines: no offset but those of the lines in it, no count,
// and nothing of retention.
func Only(r *http.Request, tenant string) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), onlyKey{}, tenant))
}

// matchedKey is where Matched leaves a counter in a request's context.
type matchedKey struct{}

// Matched returns r as one whose lines that match are added to n.
func Matched(r *http.Request, n *atomic.Uint64) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), matchedKey{}, n))
}

// matched tells who asked by Matched of lines.
func matched(r *http.Request, lines uint64) {
	if n, ok := r.Context().Value(matchedKey{}).(*atomic.Uint64); ok {
		n.Add(lines)
	}
}

// request is what the parameters of a request ask for.
type request struct {
	query   *Query         // since and until included
	pipes   *pipe.Pipeline // nil: none
	since   bool
	from    uint64
	hasFrom bool
	to      uint64 // the end of the snapshot, at most
	byTime  bool   // in the order of times; else of arrival
	limit   int    // 0: none
	last    int    // 0: none

	values url.Values // all parameters
	now    time.Time  // for relative times
}

// parseRequest reads the parameters of r, which must be among known.
func (a *API) parseRequest(r *http.Request, known ...string) (request, error) {
	var req request
	values, err := parameters(r.URL.RawQuery, known...)
	if err != nil {
		return req, err
	}
	now := time.Now()
	req.values, req.now = values, now
	q, pipes, err := parsePiped(values.Get("q"), now)
	if err != nil {
		return req, err
	}
	since, err := parseTime(values, "since", now)
	if err != nil {
		return req, err
	}
	until, err := parseTime(values, "until", now)
	if err != nil {
		return req, err
	}
	req.query, req.pipes = q.within(since, until), pipes
	if tenant, ok := r.Context().Value(onlyKey{}).(string); ok {
		req.query.tenant = &tenant
	}
	req.since = since != nil
	req.hasFrom, req.to = values.Get("from") != "", math.MaxUint64
	for name, dst := range map[string]*uint64{"from": &req.from, "to": &req.to} {
		if s := values.Get(name); s != "" {
			if *dst, err = strconv.ParseUint(s, 10, 64); err != nil {
				return req, fmt.Errorf("parameter %s: found %s, expected an offset, a number from 0", name, show(s))
			}
		}
	}
	switch s := values.Get("order"); s {
	case "", "arrival":
	case "time":
		req.byTime = true
	default:
		return req, fmt.Errorf("parameter order: found %s, expected time or arrival", show(s))
	}
	if req.limit, req.last, err = a.parseCounts(values); err != nil {
		return req, err
	}
	return req, req.checkNew()
}

// parameters reads the parameters of a request, which must be among known.
func parameters(raw string, known ...string) (url.Values, error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, fmt.Errorf("read the parameters: %w", err)
	}
	for name, v := range values {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("unknown parameter %q; known are %s", name, strings.Join(known, ", "))
		}
		if len(v) > 1 {
			return nil, fmt.Errorf("parameter %s is given %d times; give it once", name, len(v))
		}
	}
	return values, nil
}

// parseCounts reads limit and last; 0: it is not given.
func (a *API) parseCounts(values url.Values) (limit, last int, err error) {
	if limit, err = parseCount(values, "limit"); err != nil {
		return 0, 0, err
	}
	if last, err = parseCount(values, "last"); err != nil {
		return 0, 0, err
	}
	switch {
	case limit > 0 && last > 0:
		return 0, 0, errors.New("limit asks for the first lines and last for the newest; give one of them")
	case last > a.o.MaxLast:
		return 0, 0, fmt.Errorf("parameter last: %d is above the limit of %d lines; narrow it by since and until, or read in ascending order with from and limit", last, a.o.MaxLast)
	}
	return limit, last, nil
}

// parseTime returns nil if there is no such parameter.
func parseTime(values url.Values, name string, now time.Time) (*time.Time, error) {
	s := values.Get(name)
	if s == "" {
		return nil, nil
	}
	t, err := ParseTime(s, now)
	if err != nil {
		return nil, fmt.Errorf("parameter %s: %w", name, err)
	}
	return &t, nil
}

func parseCount(values url.Values, name string) (int, error) {
	s := values.Get(name)
	if s == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("parameter %s: found %s, expected a number from 1", name, show(s))
	}
	return n, nil
}

// onlyGet answers other methods.
func onlyGet(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodGet {
		return true
	}
	w.Header().Set("Allow", http.MethodGet)
	writeError(w, http.StatusMethodNotAllowed, fmt.Errorf("method %s is not allowed here; use GET", r.Method))
	return false
}

// leaveBody throws away a body that nobody reads. In HTTP/2 it would be kept as far
// as the windows of its stream and connection go, for as long as the request lasts.
func leaveBody(r *http.Request) {
	if r.ProtoMajor >= 2 {
		r.Body.Close()
	}
}

// writeError answers {"error":…}, for a syntax error with its column.
func writeError(w http.ResponseWriter, status int, err error) {
	answer := struct {
		Error  string `json:"error"`
		Column int    `json:"column,omitempty"`
	}{Error: err.Error()}
	var syntax *SyntaxError
	if errors.As(err, &syntax) {
		answer.Column = syntax.Column
	}
	setHeader(w, "application/json")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(answer) // the client may be gone
}

// setHeader sets what all answers have.
func setHeader(w http.ResponseWriter, contentType string) http.Header {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	return h
}
