package rollway

import (
	"context"
	"log/slog"
	"time"
)

// LogAt is Log for code that passes records of others on: with the time that
// they have, now if it is zero, and the program counter of their call as
// runtime.Callers and slog.Record have it, or 0 for a line without a source.
func (l *Logger) LogAt(ctx context.Context, at time.Time, pc uintptr, level slog.Level, msg string, attrs ...slog.Attr) {
	if l.gate.Level() <= level {
		l.logAt(ctx, at, pc, level, msg, attrs)
	}
}

// logAt is the part of LogAt behind the gate, as log is of the other methods.
func (l *Logger) logAt(ctx context.Context, at time.Time, pc uintptr, level slog.Level, msg string, attrs []slog.Attr) {
	c := l.core
	if c.closed.Load() {
		c.afterClose.Add(1)
		return
	}
	if c.dynamic && !c.admits(level) || c.sampler != nil && !c.sample(ctx, level, msg) {
		return
	}
	r := record{level: level, msg: msg}
	if at.IsZero() {
		r.setUnix(c.clock.now())
	} else {
		r.sec, r.nsec, r.hasTime = at.Unix(), int32(at.Nanosecond()), true
	}
	if level >= c.capture {
		if level >= c.caller.Level() {
			r.source = sourceOf(pc)
		}
		if level >= c.stack.Level() {
			r.stack = stack(callerSkip + l.skip)
		}
	}
	s := scratchPool.Get().(*scratch)
	if c.extras {
		attrs = l.complete(ctx, s, &r, attrs)
	}
	c.emit(s, l.states, c.statesOf(ctx), &r, attrs)
	s.free()
}
