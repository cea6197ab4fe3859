package encode

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/rollway/rollway/internal/jsonline"
)

// LineEncoder is a format of the user's. It must not keep l.
type LineEncoder interface {
	AppendLine(dst []byte, l *Line) []byte
}

// Line is a record as a [LineEncoder] gets it.
type Line struct {
	Time    time.Time // zero if the record has none
	Level   slog.Level
	Message string
	Logger  string
	Source  *Source // or nil
	TraceID [16]byte
	SpanID  [8]byte
	Context context.Context // may be nil
	Attrs   []slog.Attr     // all, each key once
}

// appendCustom appends the line that Options.Custom makes of r. The Line belongs
// to s, and its attributes are copies, so that those of the call stay on the
// caller's stack.
func (f *Format) appendCustom(dst []byte, s *Scratch, logger, ctx *Scope, r *Record, attrs []slog.Attr) (out []byte) {
	l := &s.custom
	*l = Line{Level: r.Level, Message: r.Message, Logger: logger.slots[slotLogger], Source: r.Source, Context: r.Context}
	if r.HasTime {
		l.Time = r.time()
	}
	if r.HasTrace {
		l.TraceID, l.SpanID = r.TraceID, r.SpanID
	}
	if r.unique {
		l.Attrs = slices.Clone(attrs)
	} else {
		_, _, l.Attrs = f.gather(s, logger, ctx, r, attrs)
	}

	mark := len(dst)
	defer func() {
		if p := recover(); p != nil {
			out = append(dst[:mark], `{"level":"ERROR","msg":`...)
			out = jsonline.AppendString(out, "rollway: the LineEncoder panicked: "+safeSprint(p))
			out = append(out, `,"attrs":{"msg":`...)
			out = append(jsonline.AppendString(out, r.Message), "}}\n"...)
		}
		l.Context, l.Attrs = nil, nil
	}()
	// The encoder gets an empty slice, so that it cannot reach what is in front of
	// its line. It may return a slice of its own, so its line is appended.
	out = append(dst[:mark], f.Custom.AppendLine(dst[mark:mark], l)...)
	if len(out) == mark || out[len(out)-1] != '\n' {
		out = append(out, '\n')
	}
	return out
}
