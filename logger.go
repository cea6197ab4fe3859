package rollway

import (
	"context"
	"log/slog"
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
	states []state // one for each of core.formats
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
	return &Logger{gate: c.gateOf(""), core: c, states: make([]state, len(c.formats))}, nil
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

// Enabled reports whether any output takes records of that level.
func (l *Logger) Enabled(_ context.Context, level slog.Level) bool {
	return l.gate.Level() <= level && l.takes(level)
}

// DebugEnabled reports whether any output takes DEBUG. It is meant to be put
// before a Debug call whose attributes cost something: it is inlined and costs
// less than a nanosecond.
func (l *Logger) DebugEnabled() bool {
	return l.gate.Level() <= slog.LevelDebug && l.takes(slog.LevelDebug)
}

// takes reports whether an output takes a level that the gate let through. It
// is not inlined so that its callers are.
//
//go:noinline
func (l *Logger) takes(level slog.Level) bool {
	return !l.core.dynamic || l.core.admits(level)
}

// callerSkip is how many frames lie between what log calls and the user's call:
// log and the method that was called.
const callerSkip = 2

// log is the part of every log method behind the gate. It is not inlined, as
// returnAddress asks for.
//
//go:noinline
func (l *Logger) log(ctx context.Context, level slog.Level, msg string, attrs []slog.Attr) {
	c := l.core
	if (c.closed.Load() || c.picky) && !l.accepts(ctx, level, msg, attrs) {
		return
	}
	r := record{level: level, msg: msg}
	r.setUnix(c.clock.now())
	if level >= c.capture && level >= c.caller.Level() {
		r.source = callSource(returnAddress(), l.skip)
	}
	l.write(ctx, scratchPool.Get().(*scratch), &r, attrs, callerSkip+l.skip)
}

// write completes r, which has its level, message, time and source, hands it to
// the outputs and gives s back. skip is how many frames lie between the caller
// of write and the user's call.
func (l *Logger) write(ctx context.Context, s *scratch, r *record, attrs []slog.Attr, skip int) {
	c := l.core
	stacked := r.level >= c.capture && r.level >= c.stack.Level()
	if c.extras || stacked {
		attrs = l.complete(ctx, s, r, attrs, stacked, skip+2)
	}
	added := c.statesOf(ctx)
	if o := c.single; o != nil { // as emit does it, in less time
		f := o.format
		s.buf = f.line(s.buf[:0], s, &l.states[0], f.stateIn(added), r, attrs)
		o.write(c, r.level, s.buf, s.part)
	} else {
		c.emit(s, l.states, added, r, attrs)
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
		attrs = rd.attrs(l.groups, attrs)
	}
	return l.derive(func(st state, f *format) state { return st.withAttrs(f, attrs) })
}

// WithGroup returns a Logger that puts the attributes of later With and log
// calls into a group of that name. A group in which nothing comes to stand is
// left out. An empty name changes nothing.
func (l *Logger) WithGroup(name string) *Logger {
	if name == "" {
		return l
	}
	d := l.derive(func(st state, f *format) state { return st.withGroup(f, name) })
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
	d := l.derive(func(st state, f *format) state { return st.withName(f, name) })
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

func (l *Logger) derive(change func(state, *format) state) *Logger {
	d := *l
	d.states = make([]state, len(l.states))
	for i := range d.states {
		d.states[i] = change(l.states[i], l.core.formats[i])
	}
	return &d
}
