package rollway

import (
	"log/slog"

	"github.com/rollway/rollway/internal/jsonline"
)

// appendCustom appends the line that a LineEncoder makes of r. The Record that
// it gets belongs to s; its attributes are copied, so that those of the call
// stay on the caller's stack.
func (f *format) appendCustom(dst []byte, s *scratch, st, ctx *state, r *record, attrs []slog.Attr) (out []byte) {
	cr := &s.custom
	*cr = Record{Level: r.level, Message: r.msg, Logger: st.slots[slotLogger], Source: r.source, ctx: r.ctx, attrs: cr.attrs[:0]}
	if r.hasTime {
		cr.Time = r.time()
	}
	if ctx != nil {
		for _, level := range ctx.raw {
			cr.attrs = append(cr.attrs, level.attrs...)
		}
	}
	cr.attrs = append(cr.attrs, r.extracted...)
	if r.hasTrace {
		cr.TraceID, cr.SpanID = r.traceID, r.spanID
	}
	if r.stack != "" {
		cr.attrs = append(cr.attrs, slog.String("stack", r.stack))
	}
	if r.cutFrom > 0 {
		cr.attrs = append(cr.attrs, slog.Int(cutKey, r.cutFrom))
	}
	s.groups = s.groups[:0]
	cr.attrs = s.appendRaw(cr.attrs, st.raw, attrs)

	mark := len(dst)
	defer func() {
		if p := recover(); p != nil {
			out = append(dst[:mark], `{"level":"ERROR","msg":`...)
			out = jsonline.AppendString(out, "rollway: the LineEncoder panicked: "+safeSprint(p))
			out = append(out, `,"attrs":{"msg":`...)
			out = append(jsonline.AppendString(out, r.msg), "}}\n"...)
		}
		clear(cr.attrs) // keeps no value alive
		clear(s.groups)
		cr.ctx = nil
		if cap(cr.attrs)+cap(s.groups) > maxKept/64 {
			cr.attrs, s.groups = nil, nil
		}
	}()
	// It gets an empty slice, so that what is in front of its line is out of
	// its reach; append also where it has returned a slice of its own.
	out = append(dst[:mark], f.custom.AppendLine(dst[mark:mark], cr)...)
	if len(out) == mark || out[len(out)-1] != '\n' {
		out = append(out, '\n')
	}
	return out
}

// appendRaw appends the attributes of a Logger and of a call, in the groups
// that they stand in, which it makes from the innermost outwards in s.groups.
func (s *scratch) appendRaw(dst []slog.Attr, levels []rawLevel, call []slog.Attr) []slog.Attr {
	if len(levels) > 0 && levels[0].group == "" {
		dst = append(dst, levels[0].attrs...)
		levels = levels[1:]
	}
	for i := len(levels) - 1; i >= 0; i-- {
		start := len(s.groups)
		s.groups = append(append(s.groups, levels[i].attrs...), call...)
		// Groups that were made before stay where they are, also if the list has moved.
		inner := s.groups[start:len(s.groups):len(s.groups)]
		if call = nil; len(inner) > 0 {
			s.groups = append(s.groups, slog.Attr{Key: levels[i].group, Value: slog.GroupValue(inner...)})
			call = s.groups[len(s.groups)-1:]
		}
	}
	return append(dst, call...)
}

// appendRaw is that of a scratch on lists of their own, for dedup; ctx comes behind the Logger's outermost ones.
func appendRaw(dst, ctx []slog.Attr, levels []rawLevel, call []slog.Attr) []slog.Attr {
	if len(levels) > 0 && levels[0].group == "" {
		dst = append(dst, levels[0].attrs...)
		levels = levels[1:]
	}
	dst = append(dst, ctx...)
	if len(levels) == 0 {
		return append(dst, call...)
	}
	inner := append([]slog.Attr(nil), levels[0].attrs...)
	inner = appendRaw(inner, nil, levels[1:], call)
	if len(inner) == 0 {
		return dst
	}
	return append(dst, slog.Attr{Key: levels[0].group, Value: slog.GroupValue(inner...)})
}
