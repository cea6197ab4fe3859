package rollway

import (
	"context"
	"log/slog"
)

// Attrs collects the attributes of one record for [Logger.LogFunc]. It must not
// be kept.
type Attrs struct{ list []slog.Attr }

// Add appends attributes.
func (a *Attrs) Add(attrs ...slog.Attr) { a.list = append(a.list, attrs...) }

// DebugFunc is LogFunc at DEBUG.
func (l *Logger) DebugFunc(ctx context.Context, msg string, fill func(*Attrs)) {
	if l.gate.Level() <= slog.LevelDebug {
		l.logFunc(ctx, slog.LevelDebug, msg, fill)
	}
}

// LogFunc is Log with attributes that fill adds, which is called only if an
// output takes the level. A call that is not taken costs about a nanosecond,
// where Log costs the building of its attributes. Where fill panics, the record
// has those that it had added, and says so.
func (l *Logger) LogFunc(ctx context.Context, level slog.Level, msg string, fill func(*Attrs)) {
	if l.gate.Level() <= level {
		l.logFunc(ctx, level, msg, fill)
	}
}

func (l *Logger) logFunc(ctx context.Context, level slog.Level, msg string, fill func(*Attrs)) {
	if l.core.dynamic && !l.core.admits(level) {
		return
	}
	s := scratchPool.Get().(*scratch)
	s.collected.list = s.collected.list[:0]
	s.collected.fill(fill)
	d := *l
	d.skip++ // this frame
	d.log(ctx, level, msg, s.collected.list)
	clear(s.collected.list)
	s.free()
}

func (a *Attrs) fill(f func(*Attrs)) {
	defer func() {
		if r := recover(); r != nil {
			a.Add(slog.String("attrs", "!PANIC: "+safeSprint(r)))
		}
	}()
	f(a)
}
