package rollway

import (
	"context"
	"log/slog"
	"time"

	"github.com/rollway/rollway/internal/encode"
)

// Logger writes records to its outputs. It is immutable and safe for
// concurrent use; With, WithGroup and Named derive new ones that share its
// outputs. Make one with [New]; the zero value is not usable.
//
// A log method encodes the record, hands the line to each output that admits
// its level, and returns. It never panics (but for Panic) and never returns an
// error: what goes wrong with an output is counted in Stats and told to
// Options.OnError. It waits only where an output does, and no output holds up
// another: buffering writers that have room get the line first, then plain
// writers, then those that have to be waited for, and last those that encode as
// they write ([Custom]). A buffering writer waits as it was told to when it is
// full; a plain one that another call is in is waited for up to Options.MaxWait.
// A call hangs only if it is itself inside a plain writer that hangs.
//
// Attributes do not outlive the call. With values known at compile time or
// not, a call with attributes of slog's own kinds allocates nothing.
type Logger struct {
	gate   *slog.LevelVar // below it no output takes anything
	core   *core
	scopes []encode.Scope // one for each of core.formats
	name   string
	groups []string // that WithGroup opened
	skip   int      // frames between the call of a log method and the one to name as caller
}

// New returns a Logger that is ready for use. Options with mistakes return an
// error that names every one of them.
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

// Log logs at any level. At FATAL it does not exit, at PANIC it does not panic.
func (l *Logger) Log(ctx context.Context, level slog.Level, msg string, attrs ...slog.Attr) {
	if l.gate.Level() <= level {
		l.log(ctx, level, msg, attrs)
	}
}

// Enabled reports whether any output takes records of that level. It is inlined
// and costs about a nanosecond: put it before a call whose attributes are costly to
// build.
func (l *Logger) Enabled(_ context.Context, level slog.Level) bool {
	return l.gate.Level() <= level && l.takes(level)
}

// takes reports whether an output takes a level that the gate let through. It
// is not inlined so that its callers are.
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
	s.from = origin{byLog: true}
	if level >= l.core.capture {
		s.from.returnTo = returnAddress()
	}
	r := encode.Record{Level: level, Message: msg}
	l.write(ctx, s, &r, attrs, callerSkip+l.skip)
}

// LogAt is Log for code that passes on records of others, with their time, or now
// if at is zero, and the program counter of their call as runtime.Callers and
// slog.Record have it, or 0 for a line without a source.
func (l *Logger) LogAt(ctx context.Context, at time.Time, pc uintptr, level slog.Level, msg string, attrs ...slog.Attr) {
	if l.gate.Level() <= level {
		s := scratchPool.Get().(*scratch)
		s.from = origin{pc: pc}
		r := encode.Record{Level: level, Message: msg}
		if !at.IsZero() {
			r.SetTime(at)
		}
		l.write(ctx, s, &r, attrs, callerSkip-1+l.skip)
	}
}

// origin tells write where a record comes from.
type origin struct {
	pc       uintptr // of the user's call, unless byLog is set; 0 if it is not known
	byLog    bool    // Logger.log is the caller: the user's call is found on the stack
	returnTo uintptr // of Logger.log, or 0
	timeless bool    // a record without a time stays without one
}

// write builds the record of a log call from r, which has a level, a message and
// perhaps a time, and from s.from; hands it to the outputs; and frees s. skip is the
// number of frames between write and the user's call.
func (l *Logger) write(ctx context.Context, s *scratch, r *encode.Record, attrs []slog.Attr, skip int) {
	c := l.core
	if (c.closed.Load() || c.picky) && !l.accepts(ctx, r.Level, r.Message, attrs) {
		s.free()
		return
	}
	if !r.HasTime && !s.from.timeless {
		r.SetUnix(c.clock.now())
	}
	trace := ""
	if r.Level >= c.capture {
		if r.Level >= c.caller.Level() {
			r.Source = s.from.source(l.skip)
		}
		if r.Level >= c.stack.Level() {
			trace = stack(skip + 1)
		}
	}
	if c.extras || trace != "" {
		attrs = l.complete(ctx, s, r, attrs, trace)
	}
	added := c.scopesOf(ctx)
	if o := c.single; o != nil { // as emit does it, in less time
		f := o.format
		s.Buf = f.Line(s.Buf[:0], &s.Scratch, &l.scopes[0], f.scopeIn(added), r, attrs)
		o.write(c, r.Level, s.Buf, s.part)
	} else {
		c.emit(s, l.scopes, added, r, attrs)
	}
	s.free()
}

// With returns a Logger whose records carry attrs, which are encoded now: what
// a pointer among them refers to may change afterwards without effect.
func (l *Logger) With(attrs ...slog.Attr) *Logger {
	if len(attrs) == 0 {
		return l
	}
	if rd := l.core.redact; rd != nil {
		attrs = rd.Attrs(l.groups, attrs)
	}
	return l.derive(func(sc encode.Scope, f *encode.Format) encode.Scope { return sc.WithAttrs(f, attrs) })
}

// WithGroup returns a Logger that puts the attributes of later With and log
// calls into a group of that name. A group in which nothing comes to stand is
// left out. An empty name changes nothing.
func (l *Logger) WithGroup(name string) *Logger {
	if name == "" {
		return l
	}
	d := l.derive(func(sc encode.Scope, f *encode.Format) encode.Scope { return sc.WithGroup(f, name) })
	d.groups = append(l.groups[:len(l.groups):len(l.groups)], name)
	return d
}

// Named returns a Logger whose records carry name under the key logger, behind
// the name that l has: Named("db").Named("pool") is db.pool. An empty name
// changes nothing.
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

// WithCallerSkip returns a Logger that takes for the caller of a log method the
// one n frames further up: for functions that wrap log methods.
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
