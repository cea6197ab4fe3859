// Package httplog logs the requests of an HTTP server: one line per request, with an
// id that every line of the handler carries, and panics with their stack. It also
// serves the levels of a program over HTTP.
package httplog

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/internal/request"
)

// Options configures [Middleware]. The zero value is the recommended setting.
type Options struct {
	// Level returns the level of a request's line. status is that of the line, or 0
	// if the handler hijacked the connection or ended before it answered. Default:
	// ERROR for 5xx, WARN for 4xx, else INFO.
	Level func(r *http.Request, status int) slog.Level

	// Skip leaves out a request's line, for health checks and the like:
	//
	//	func(r *http.Request, status int) bool { return r.URL.Path == "/healthz" && status < 500 }
	//
	// Panics are always logged. Default: no line is left out.
	Skip func(r *http.Request, status int) bool

	// Attrs returns attributes to add to a request's line. Default: none.
	Attrs func(r *http.Request) []slog.Attr

	// Query adds the query, which often holds secrets, to a request's line.
	Query bool

	// IDHeader is the header with a request's id. Default: X-Request-Id.
	IDHeader string

	// IgnoreClientID gives every request a new id, for servers whose clients must not
	// choose how their requests are found in a log.
	IgnoreClientID bool

	// NewID returns an id. Default: 26 random letters and digits.
	NewID func() string

	// Repanic panics again after a handler's panic is logged and answered; net/http
	// then logs it a second time and closes the connection. Default: the panic ends
	// in the middleware.
	Repanic bool
}

// Middleware returns a function that wraps a handler so that its requests are logged.
//
// The request gets an id: the one in its X-Request-Id header if that is valid (1 to
// 128 letters, digits and -._~:/+=@), else a new one. The response has it in its
// header too. The request's context carries it as the attribute request_id, and with a valid
// W3C traceparent header also the caller's trace_id and span_id. Every line logged
// with that context has them. In the handler, [rollway.FromContext] returns log and
// [RequestID] the id.
//
// When the handler has returned, one line reports method, path, route (the pattern of
// [http.ServeMux], if any), status, bytes (of the body, before compression by outer
// middleware), duration and remote:
//
//	{"time":"…","level":"INFO","msg":"http request","attrs":{"request_id":"…","method":"GET","path":"/pay","status":200,"bytes":2,"duration":81920,"remote":"192.0.2.1:4711"}}
//
// A method, path or query longer than 2 KiB is cut and followed by "…" and its
// length.
//
// client_gone reports that the client went away before the handler returned: the
// request's context was canceled without a cause of its own
// ([context.WithCancelCause]). status is then that of the answer, or 499, as in
// nginx, without one.
//
// All these lines have one message. [rollway.Sampling] distinguishes them by route
// and status with Sampling.Attrs:
//
//	Sampling: &rollway.Sampling{First: 100, Then: 100, Attrs: []string{"route", "status"}}
//
// A handler that hijacked the connection has no status and bytes.
//
// A panic is logged after that line at PANIC, with its stack and source, and every
// output is synced. If the response had not started, it is 500. Otherwise it is cut
// off by a panic with [http.ErrAbortHandler], so that the client does not mistake the
// part for the whole. A handler's own panic with http.ErrAbortHandler is passed on
// and not logged as a panic; its line has aborted, as does that of a handler that
// ended by [runtime.Goexit].
//
// The handler's ResponseWriter has the methods of [http.Flusher] and [http.Hijacker] if
// the original has them, always those of [io.ReaderFrom] and [io.StringWriter], and an
// Unwrap method for [http.ResponseController].
//
// A request costs 13 allocations (about 1 KiB) if it brings its id, 14 if not, and 19
// with a traceparent; a test checks that.
func Middleware(log *rollway.Logger, o Options) func(http.Handler) http.Handler {
	if o.Level == nil {
		o.Level = levelOf
	}
	if o.IDHeader == "" {
		o.IDHeader = request.IDField
	}
	o.IDHeader = http.CanonicalHeaderKey(o.IDHeader)
	if o.NewID == nil {
		o.NewID = request.NewID
	}
	m := &middleware{Options: o, log: log}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.serve(next, w, r) })
	}
}

// RequestID returns the id that [Middleware] put into a request's context, for
// requests to other services, or "". The gRPC interceptors of bridge/rpclog use the
// same id.
func RequestID(ctx context.Context) string { return request.ID(ctx) }

func levelOf(_ *http.Request, status int) slog.Level {
	switch {
	case status >= 500:
		return slog.LevelError
	case status >= 400:
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// clientClosedRequest is the status that nginx logs if the client closed the
// connection before there was an answer.
const clientClosedRequest = 499

// middleware is immutable.
type middleware struct {
	Options
	log *rollway.Logger
}

// exchange is one request and its response. The goroutine that serves it owns it.
type exchange struct {
	response
	m        *middleware
	r        *http.Request // as the handler got it
	id       string        // "" if an outer middleware has set it
	path     string        // as received
	query    string
	begin    time.Time
	gone     bool // the client had gone away when the handler ended
	returned bool // the handler returned, or the middleware answered for it
	panicked bool
}

func (m *middleware) serve(next http.Handler, w http.ResponseWriter, r *http.Request) {
	x := &exchange{m: m, path: r.URL.Path, query: r.URL.RawQuery, begin: time.Now()}
	x.response.ResponseWriter = w
	x.r = r.WithContext(x.context(r))
	defer x.end()
	next.ServeHTTP(x.response.upgraded(), x.r)
	x.returned = true
}

// context returns r's context with what the handler's lines carry, and sets the id in
// the response. If the middleware is nested, the outer one counts.
func (x *exchange) context(r *http.Request) context.Context {
	m, ctx := x.m, r.Context()
	if request.ID(ctx) != "" {
		return rollway.NewContext(ctx, m.log)
	}
	ids := r.Header[m.IDHeader]
	if m.IgnoreClientID {
		ids = nil
	}
	ctx = request.Begin(ctx, &x.id, ids, r.Header["Traceparent"], m.NewID)
	x.Header()[m.IDHeader] = []string{x.id}
	return rollway.NewContext(ctx, m.log)
}

// end is deferred around the handler.
func (x *exchange) end() {
	p := recover()
	x.gone = context.Cause(x.r.Context()) == context.Canceled
	aborted := p == http.ErrAbortHandler
	if x.status == 0 && !x.hijacked {
		switch {
		case x.gone && (p == nil || aborted):
			x.status = clientClosedRequest
		case x.returned:
			x.status = http.StatusOK // net/http answers so if the handler did not
		}
	}
	if p == nil || aborted {
		x.line()
		if p != nil {
			panic(p)
		}
		return
	}
	at := time.Now()
	begun := x.status != 0 || x.hijacked
	if !begun {
		x.fail(x.m.Repanic)
	}
	x.panicked, x.returned = true, !begun
	x.line()
	x.m.log.LogPanic(x.r.Context(), at, p)
	switch {
	case x.m.Repanic:
		panic(p)
	case begun:
		panic(http.ErrAbortHandler)
	}
}

// fail answers 500. Headers that the handler set for its own response do not apply.
func (x *exchange) fail(flush bool) {
	const body = "Internal Server Error\n"
	h := x.Header()
	for _, key := range []string{"Cache-Control", "Content-Encoding", "Etag", "Last-Modified"} {
		delete(h, key)
	}
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", "22")
	x.WriteHeader(http.StatusInternalServerError)
	_, _ = x.WriteString(body) // the client may be gone
	if flush {
		_ = http.NewResponseController(x.ResponseWriter).Flush() // net/http drops what is buffered after a panic
	}
}

// line logs the request.
func (x *exchange) line() {
	m := x.m
	if m.Skip != nil && m.Skip(x.r, x.status) {
		return
	}
	level := m.Level(x.r, x.status)
	if x.panicked {
		level = max(level, slog.LevelError)
	}
	ctx := x.r.Context()
	if !m.log.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 11)
	attrs = append(attrs, slog.String("method", bounded(x.r.Method)), slog.String("path", bounded(x.path)))
	if m.Query && x.query != "" {
		attrs = append(attrs, slog.String("query", bounded(x.query)))
	}
	if x.r.Pattern != "" {
		attrs = append(attrs, slog.String("route", x.r.Pattern))
	}
	if x.hijacked {
		attrs = append(attrs, slog.Bool("hijacked", true))
	} else if x.status != 0 {
		attrs = append(attrs, slog.Int("status", x.status), slog.Int64("bytes", x.bytes))
	}
	if !x.returned {
		attrs = append(attrs, slog.Bool("aborted", true))
	}
	if x.gone {
		attrs = append(attrs, slog.Bool("client_gone", true))
	}
	attrs = append(attrs, slog.Duration("duration", time.Since(x.begin)), slog.String("remote", x.r.RemoteAddr))
	if m.Attrs != nil {
		attrs = append(attrs, m.Attrs(x.r)...)
	}
	m.log.LogAt(ctx, time.Time{}, 0, level, "http request", attrs...)
}

// maxText is the length in bytes to which texts of the client are cut.
const maxText = 2 << 10

// bounded returns s, or its beginning and its length.
func bounded(s string) string {
	if len(s) <= maxText {
		return s
	}
	n := maxText
	for n > maxText-utf8.UTFMax && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "… (" + strconv.Itoa(len(s)) + " bytes)"
}
