package rollway

import (
	"context"
	"log/slog"
)

// Handler returns a [slog.Handler] over the same outputs, with the attributes,
// groups and name that l has:
//
//	slog.SetDefault(slog.New(log.Handler()))
//
// It follows slog's rules for handlers and writes the same lines as l. Handle
// always returns nil: what goes wrong with an output is counted in Stats and
// told to Options.OnError.
func (l *Logger) Handler() slog.Handler { return &handler{l} }

// handleSkip is how many frames lie between Handle and the call of a method of
// slog.Logger, where that is called directly.
const handleSkip = 3

// handler is immutable, as the Logger in it is.
type handler struct{ l *Logger }

func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.l.Enabled(ctx, level)
}

func (h *handler) Handle(ctx context.Context, sr slog.Record) error {
	c := h.l.core
	if c.closed.Load() {
		c.afterClose.Add(1)
		return nil
	}
	if c.sampler != nil && !c.sample(ctx, sr.Level, sr.Message) {
		return nil
	}
	r := record{level: sr.Level, msg: sr.Message}
	if !sr.Time.IsZero() {
		r.sec, r.nsec, r.hasTime = sr.Time.Unix(), int32(sr.Time.Nanosecond()), true
	}
	if sr.Level >= c.capture {
		if sr.Level >= c.caller.Level() {
			r.source = sourceOf(sr.PC)
		}
		if sr.Level >= c.stack.Level() {
			r.stack = stack(handleSkip)
		}
	}
	s := scratchPool.Get().(*scratch)
	s.attrs = s.attrs[:0]
	sr.Attrs(func(a slog.Attr) bool {
		s.attrs = append(s.attrs, a)
		return true
	})
	attrs := s.attrs
	if c.extras {
		attrs = h.l.complete(ctx, s, &r, attrs)
	}
	c.emit(s, h.l.states, c.statesOf(ctx), &r, attrs)
	clear(s.attrs) // keeps no value alive
	s.free()
	return nil
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{h.l.With(attrs...)}
}

func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{h.l.WithGroup(name)}
}
