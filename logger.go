package rollway

import (
	"context"
	"log/slog"
	"time"

	"github.com/rollway/rollway/internal/encode"
)

// Logger writes records to its outputs. It is immutable and safe for concurrent use;
// With, WithGroup and Named derive new Loggers that share its outputs. Create one
// with [New]; the zero value is not usable.
//
// A log method encodes the record, hands the line to each output that admits its
// level, and returns. It never panics (except Panic) and never returns an error:
// errors of outputs are counted in Stats and reported to Options.OnError. It waits
// only if an output does, and no output delays another: buffering writers with room
// get the line first, then plain writers, then writers that must be awaited. A full
// buffering writer waits as configured; a plain writer that is busy is awaited for at most
// Options.MaxWait. A call hangs only if it is itself inside a plain writer that hangs.
//
// Attributes do not outlive the call. A call with attributes of slog's own kinds
// allocates nothing.
type Logger struct {
	gate   *slog.LevelVar // no output takes a level below it
	core   *core
	scopes []encode.Scope // one for each of core.formats
	name   string
	groups []string // opened by WithGroup
	skip   int      // frames above the call of a log method to skip
}

// New returns a Logger. The error names every mistake in o.
func New(o Options) (*Logger, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	c, err := newCore(o)
	if err != nil {
		return nil, err
	}
	return &Logger{gate: c.gateOf(""), core: c, scopes: make([]encode.Scope, len(c.formats))}, nil
}

// Trace logs at TRACE (-8).
func (l *Logger) Trace(ctx context.Context, msg string, attrs ...slog.Attr) {
	if l.gate.Level() <= LevelTrace {
		l.log(ctx, LevelTrace, msg, attrs)
	}
}

// Debug logs at DEBUG (-4).
func (l *Logger) Debug(ctx context.Context, msg string, attrs ...slog.Attr) {
	if l.gate.Level() <= slog.LevelDebug {
		l.log(ctx, slog.LevelDebug, msg, attrs)
	}
}

// Info logs at INFO (0).
func (l *Logger) Info(ctx context.Context, msg string, attrs ...slog.Attr) {
	if l.gate.Level() <= slog.LevelInfo {
		l.log(ctx, slog.LevelInfo, msg, attrs)
	}
}

// Warn logs at WARN (4).
func (l *Logger) Warn(ctx context.Context, msg string, attrs ...slog.Attr) {
	if l.gate.Level() <= slog.LevelWarn {
		l.log(ctx, slog.LevelWarn, msg, attrs)
	}
}

// Error logs at ERROR (8).
func (l *Logger) Error(ctx context.Context, msg string, attrs ...slog.Attr) {
	if l.gate.Level() <= slog.LevelError {
		l.log(ctx, slog.LevelError, msg, attrs)
	}
}

// Log logs at any level. It does not exit at FATAL and does not panic at PANIC.
func (l *Logger) Log(ctx context.Context, level slog.Level, msg string, attrs ...slog.Attr) {
	if l.gate.Level() <= level {
		l.log(ctx, level, msg, attrs)
	}
}

// Enabled reports whether any output takes records of that level. It is inlined and
// costs about a nanosecond: call it before a log call whose attributes are costly to
// build.
func (l *Logger) Enabled(_ context.Context, level slog.Level) bool {
	return l.gate.Level() <= level && l.takes(level)
}

// LowestLevel returns a Leveler below whose level neither l nor a Logger that Named
// derives from it writes. It follows changes of Options.Levels. It is for code that is
// asked for a level before it knows the name, as a core of zap.
func (l *Logger) LowestLevel() slog.Leveler {
	if c := l.core; c.levels != nil {
		return c.levels.gate(gateKey{l.name, c.floor, true})
	}
	return l.gate
}

// takes reports whether an output takes a level that passed the gate. It is not
// inlined so that its callers are.
//
//go:noinline
func (l *Logger) takes(level slog.Level) bool {
	return !l.core.dynamic || l.core.admits(level)
}

// callerSkip is the number of frames between write and the call of a log method:
// log and the method.
const callerSkip = 2

// log is what a log method does after the gate. It is not inlined, as returnAddress
// requires.
//
//go:noinline
func (l *Logger) log(ctx context.Context, level slog.Level, msg string, attrs []slog.Attr) {
	s := scratchPool.Get().(*scratch)
	s.from = origin{by: byLog}
	if level >= l.core.capture {
		s.from.pc = returnAddress()
	}
	r := encode.Record{Level: level, Message: msg}
	l.write(ctx, s, &r, attrs)
}

// LogAt is Log for code that forwards records: at is their time, or now if zero; pc
// is the program counter of their call as in slog.Record, or 0 for no source.
func (l *Logger) LogAt(ctx context.Context, at time.Time, pc uintptr, level slog.Level, msg string, attrs ...slog.Attr) {
	if l.gate.Level() <= level {
		s := scratchPool.Get().(*scratch)
		s.from = origin{pc, byCode}
		r := encode.Record{Level: level, Message: msg}
		if !at.IsZero() {
			r.SetTime(at)
		}
		l.write(ctx, s, &r, attrs)
	}
}

// origin tells write where a record comes from.
type origin struct {
	pc uintptr // of the user's call; byLog: where Logger.log returns to; or 0
	by entry
}

// entry is the function that calls write.
type entry uint8

const (
	byLog  entry = iota // Logger.log: the user's call is found on the stack
	byCode              // Logger.LogAt
	bySlog              // handler.Handle: a record without a time stays without one
)

// write builds the record of a log call from r, which has a level, a message and
// perhaps a time, and from s.from; hands it to the outputs; and frees s.
func (l *Logger) write(ctx context.Context, s *scratch, r *encode.Record, attrs []slog.Attr) {
	c := l.core
	if (c.closed.Load() || c.picky) && !l.accepts(ctx, r.Level, r.Message, attrs) {
		s.free()
		return
	}
	if !r.HasTime && s.from.by != bySlog {
		r.SetUnix(c.clock.now())
	}
	trace := ""
	if r.Level >= c.capture {
		if c.caller.admits(r.Level) {
			r.Source = s.from.source(l.skip)
		}
		if c.stack.admits(r.Level) {
			trace = stack(s.from.skip(l) + 1)
		}
	}
	if c.extras || trace != "" {
		attrs = l.complete(ctx, s, r, attrs, trace)
	}
	added := c.scopesOf(ctx)
	if o := c.single; o != nil { // like emit, but faster
		f := o.format
		s.Buf = f.Line(s.Buf[:0], &s.Scratch, &l.scopes[0], f.scopeIn(added), r, attrs)
		o.write(c, r.Level, s.Buf, s.part)
	} else {
		c.emit(s, l.scopes, added, r, attrs)
	}
	s.free()
}

// With returns a Logger whose records carry attrs. They are encoded now: later
// changes to what they point to have no effect.
func (l *Logger) With(attrs ...slog.Attr) *Logger {
	if len(attrs) == 0 {
		return l
	}
	attrs = l.core.rewrite(l.groups, attrs)
	return l.derive(func(sc encode.Scope, f *encode.Format) encode.Scope { return sc.WithAttrs(f, attrs) })
}

// WithGroup returns a Logger that puts later attributes in the named group. Empty
// groups are omitted. An empty name changes nothing.
func (l *Logger) WithGroup(name string) *Logger {
	if name == "" {
		return l
	}
	d := l.derive(func(sc encode.Scope, f *encode.Format) encode.Scope { return sc.WithGroup(f, name) })
	d.groups = append(l.groups[:len(l.groups):len(l.groups)], name)
	return d
}

// Named returns a Logger whose records carry a name under the key logger: that of l,
// a dot and name. Named("db").Named("pool") is db.pool. An empty name changes
// nothing.
func (l *Logger) Named(name string) *Logger {
	if name == "" {
		return l
	}
	if l.name != "" {
		name = l.name + "." + name
	}
	d := l.derive(func(sc encode.Scope, f *encode.Format) encode.Scope { return sc.WithName(f, name) })
	d.name = name
	d.gate = l.core.gateOf(name)
	return d
}

// WithCallerSkip returns a Logger that skips n more frames to find the caller: for
// functions that wrap log methods.
func (l *Logger) WithCallerSkip(n int) *Logger {
	d := *l
	d.skip += n
	return &d
}

func (l *Logger) derive(change func(encode.Scope, *encode.Format) encode.Scope) *Logger {
	d := *l
	d.scopes = make([]encode.Scope, len(l.scopes))
	for i := range d.scopes {
		d.scopes[i] = change(l.scopes[i], &l.core.formats[i].Format)
	}
	return &d
}
