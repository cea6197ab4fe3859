package rollway

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/rollway/rollway/internal/encode"
)

type (
	attrsKey  struct{} // of a *contextAttrs
	loggerKey struct{} // of a *Logger
)

// contextAttrs holds the attributes of one ContextWith. It is immutable except for
// its cache.
type contextAttrs struct {
	parent *contextAttrs
	attrs  []slog.Attr

	// encoded caches all attributes up to here, as encoded by the cores that used
	// them last.
	encoded [2]atomic.Pointer[contextScopes]
	turn    atomic.Uint32 // selects the entry of encoded to replace next
}

type contextScopes struct {
	core   *core
	scopes []encode.Scope // one for each of core.formats
}

// ContextWith returns a context with which every line logged carries attrs, before
// the Logger's own and outside its groups. Each Logger encodes them once, at its
// first call with that context.
func ContextWith(ctx context.Context, attrs ...slog.Attr) context.Context {
	if len(attrs) == 0 {
		return ctx
	}
	ctx = orBackground(ctx)
	parent := attrsIn(ctx)
	copied := slices.Clone(attrs)
	return context.WithValue(ctx, attrsKey{}, &contextAttrs{parent: parent, attrs: copied})
}

// ContextAttrs returns the attributes that [ContextWith] put into ctx, the oldest
// first, for handlers of other packages.
func ContextAttrs(ctx context.Context) []slog.Attr {
	n := attrsIn(ctx)
	if n == nil {
		return nil
	}
	return n.list()
}

func (n *contextAttrs) list() []slog.Attr {
	if n.parent == nil {
		return slices.Clone(n.attrs)
	}
	return append(n.parent.list(), n.attrs...)
}

var backgroundType = typeWord(context.Background())

// typeWord returns the first word of an interface, which is its value's type.
func typeWord(v any) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&v)) }

// scopesOf returns what the context adds to a line, one Scope for each format, or nil
// if it adds nothing.
func (c *core) scopesOf(ctx context.Context) []encode.Scope {
	if ctx == nil || typeWord(ctx) == backgroundType { // the common case; comparing the values would be a call
		return nil
	}
	n := attrsIn(ctx)
	if n == nil {
		return nil
	}
	return n.scopes(c)
}

// attrsIn returns what ContextWith put into ctx, or nil, also if ctx panics.
func attrsIn(ctx context.Context) (n *contextAttrs) {
	if ctx == nil {
		return nil
	}
	defer func() { _ = recover() }()
	n, _ = ctx.Value(attrsKey{}).(*contextAttrs)
	return n
}

func (n *contextAttrs) scopes(c *core) []encode.Scope {
	for i := range n.encoded {
		if e := n.encoded[i].Load(); e != nil && e.core == c {
			return e.scopes
		}
	}
	scopes := make([]encode.Scope, len(c.formats))
	if n.parent != nil {
		copy(scopes, n.parent.scopes(c))
	}
	attrs := c.rewrite(nil, n.attrs)
	for i := range scopes {
		scopes[i] = scopes[i].WithAttrs(&c.formats[i].Format, attrs)
	}
	n.encoded[n.turn.Add(1)%uint32(len(n.encoded))].Store(&contextScopes{c, scopes})
	return scopes
}

// extractFrom collects the attributes that Options.Extract finds in ctx.
func (c *core) extractFrom(ctx context.Context, s *scratch) {
	for _, f := range c.extract {
		s.outer = extract(ctx, s.outer, f)
	}
	s.outer = c.rewrite(nil, s.outer)
}

func extract(ctx context.Context, dst []slog.Attr, f func(context.Context, []slog.Attr) []slog.Attr) (out []slog.Attr) {
	defer func() {
		if recover() != nil {
			out = dst
		}
	}()
	return f(ctx, dst)
}

// traceOf sets the ids that Options.Trace finds in ctx.
func (c *core) traceOf(ctx context.Context, r *encode.Record) {
	defer func() {
		if recover() != nil {
			r.HasTrace = false
		}
	}()
	r.TraceID, r.SpanID, r.HasTrace = c.trace(ctx)
}

// NewContext returns a context that carries l for [FromContext].
func NewContext(ctx context.Context, l *Logger) context.Context {
	return context.WithValue(ctx, loggerKey{}, l)
}

// FromContext returns the Logger that [NewContext] put into ctx, or else [Default].
func FromContext(ctx context.Context) *Logger {
	if ctx != nil {
		if l, _ := ctx.Value(loggerKey{}).(*Logger); l != nil {
			return l
		}
	}
	return Default()
}

var defaultLogger atomic.Pointer[Logger]

// Default returns the Logger of the last [SetDefault], or else one with zero Options:
// JSON to stderr at INFO.
func Default() *Logger {
	if l := defaultLogger.Load(); l != nil {
		return l
	}
	return fallback()
}

// SetDefault makes l what [Default] and [FromContext] return, and what [slog.Default] and
// package log write to.
func SetDefault(l *Logger) {
	defaultLogger.Store(l)
	slog.SetDefault(slog.New(l.Handler()))
}

var fallback = sync.OnceValue(func() *Logger {
	l, err := New(Options{})
	if err != nil {
		panic(err) // unreachable: zero Options have no mistakes
	}
	return l
})
