package rollway

import (
	"log/slog"
	"slices"

	"github.com/rollway/rollway/internal/jsonline"
)

// appendCustom appends the line that a LineEncoder makes of r. The Record that
// it gets belongs to s; its attributes are copied, so that those of the call
// stay on the caller's stack.
func (f *format) appendCustom(dst []byte, s *scratch, st, ctx *state, r *record, attrs []slog.Attr) (out []byte) {
	cr := &s.custom
	*cr = Record{Level: r.level, Message: r.msg, Logger: st.slots[slotLogger], Source: r.source, ctx: r.ctx}
	if r.hasTime {
		cr.Time = r.time()
	}
	if r.hasTrace {
		cr.TraceID, cr.SpanID = r.traceID, r.spanID
	}
	if r.unique {
		cr.attrs = slices.Clone(attrs)
	} else {
		_, _, cr.attrs = f.gather(s, st, ctx, r, attrs)
	}

	mark := len(dst)
	defer func() {
		if p := recover(); p != nil {
			out = append(dst[:mark], `{"level":"ERROR","msg":`...)
			out = jsonline.AppendString(out, "rollway: the LineEncoder panicked: "+safeSprint(p))
			out = append(out, `,"attrs":{"msg":`...)
			out = append(jsonline.AppendString(out, r.msg), "}}\n"...)
		}
		cr.ctx, cr.attrs = nil, nil
	}()
	// It gets an empty slice, so that what is in front of its line is out of
	// its reach; append also where it has returned a slice of its own.
	out = append(dst[:mark], f.custom.AppendLine(dst[mark:mark], cr)...)
	if len(out) == mark || out[len(out)-1] != '\n' {
		out = append(out, '\n')
	}
	return out
}
