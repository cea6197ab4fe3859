package rollway

import (
	"context"
	"log/slog"

	"github.com/rollway/rollway/internal/encode"
)

// Handler returns a [slog.Handler] that writes to the same outputs, with the
// attributes, groups and name of l:
//
//	slog.SetDefault(slog.New(log.Handler()))
//
// It follows slog's rules for handlers and writes the same lines as l. Handle always
// returns nil: errors of outputs are counted in Stats and reported to
// Options.OnError.
func (l *Logger) Handler() slog.Handler { return &handler{l} }

// handler is immutable, as the Logger in it is.
type handler struct{ l *Logger }

func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.l.Enabled(ctx, level)
}

func (h *handler) Handle(ctx context.Context, sr slog.Record) error {
	s := scratchPool.Get().(*scratch)
	s.from = origin{sr.PC, bySlog}
	sr.Attrs(func(a slog.Attr) bool {
		s.attrs = append(s.attrs, a)
		return true
	})
	r := encode.Record{Level: sr.Level, Message: sr.Message}
	if !sr.Time.IsZero() {
		r.SetTime(sr.Time)
	}
	h.l.write(ctx, s, &r, s.attrs)
	return nil
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{h.l.With(attrs...)}
}

func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{h.l.WithGroup(name)}
}
