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
	if (c.closed.Load() || c.picky) && !l.accepts(ctx, level, msg, attrs) {
		return
	}
	r := record{level: level, msg: msg}
	if at.IsZero() {
		r.setUnix(c.clock.now())
	} else {
		r.setTime(at)
	}
	if level >= c.capture && level >= c.caller.Level() {
		r.source = sourceOf(pc)
	}
	l.write(ctx, scratchPool.Get().(*scratch), &r, attrs, callerSkip+l.skip)
}
