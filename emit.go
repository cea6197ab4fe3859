package rollway

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// record is one log call on its way to the encoders.
type record struct {
	sec     int64 // since 1970
	nsec    int32 // 0 to 999,999,999
	hasTime bool  // false: a slog.Record without a time
	level   slog.Level
	msg     string
	source  string // of the call, escaped for JSON, or ""
	stack   string // of the call, or ""
	cutFrom int    // length of the line that was too long, or 0

	extracted []slog.Attr     // from the context, by Options.Extractors
	ctx       context.Context // of the call, where a LineEncoder wants it

	hasTrace bool
	traceID  [16]byte
	spanID   [8]byte
}

// setUnix sets the time from nanoseconds since 1970, which are not negative.
func (r *record) setUnix(ns int64) {
	r.sec, r.nsec, r.hasTime = ns/1e9, int32(ns%1e9), true
}

func (r *record) time() time.Time { return time.Unix(r.sec, int64(r.nsec)) }

// scratch is what encoding one record needs. It is owned by the call that took
// it from the pool until it is put back.
type scratch struct {
	buf    []byte
	ends   []int       // where each format's line ends in buf; the first begins at 0
	attrs  []slog.Attr // of a slog.Record
	custom Record      // for a LineEncoder
	groups []slog.Attr // what stands in the groups of custom
	second secondCache
	text   textLine
	part   uint32 // of the counters; scratches of one processor mostly have their own

	collected Attrs // for LogFunc
	extracted Attrs // by Options.Extractors
}

// maxKept bounds the buffers that go back to the pool.
const maxKept = 64 << 10

var (
	scratchPool = sync.Pool{New: func() any {
		return &scratch{buf: make([]byte, 0, 1024), ends: make([]int, 0, 4), part: scratches.Add(1)}
	}}
	scratches atomic.Uint32
)

func (s *scratch) free() {
	if cap(s.buf) > maxKept || cap(s.attrs) > maxKept/64 {
		return
	}
	clear(s.extracted.list) // keeps no value alive
	scratchPool.Put(s)
}

// complete adds to r what options ask for, and returns attrs as they may be
// written. Only a core with extras has use for it.
func (l *Logger) complete(ctx context.Context, s *scratch, r *record, attrs []slog.Attr) []slog.Attr {
	c := l.core
	if c.trace != nil && ctx != nil {
		c.traceOf(ctx, r)
	}
	if len(c.extract) > 0 && ctx != nil {
		c.extractFrom(ctx, s, r)
	}
	if c.custom {
		r.ctx = ctx
	}
	if c.redact != nil {
		r.msg = c.redact.text(r.msg)
		attrs = c.redact.attrs(l.groups, attrs)
	}
	return attrs
}

// emit encodes r once per format and hands the line to each output that admits
// it. ctx holds what the context adds for each format, or is nil.
func (c *core) emit(s *scratch, states, ctx []state, r *record, attrs []slog.Attr) {
	if o := c.single; o != nil {
		var fromCtx *state
		if ctx != nil {
			fromCtx = &ctx[0]
		}
		s.buf = c.formats[0].line(s.buf[:0], s, &states[0], fromCtx, r, attrs)
		o.write(c, r.level, s.buf, s.part)
		return
	}
	c.emitToAll(s, states, ctx, r, attrs)
}

// emitToAll is emit for several outputs: those that buffer get the line first,
// so that one which blocks holds up none of them.
func (c *core) emitToAll(s *scratch, states, ctx []state, r *record, attrs []slog.Attr) {
	s.buf, s.ends = s.buf[:0], s.ends[:0]
	extracted := r.extracted
	if c.dedup {
		r.extracted = nil // they are among attrs then
	}
	for i, f := range c.formats {
		if f.admits(r.level) {
			start := len(s.buf)
			st, attrs := &states[i], attrs
			var fromCtx *state
			if ctx != nil {
				fromCtx = &ctx[i]
			}
			if c.dedup {
				st, fromCtx, attrs = deduped(st, fromCtx, extracted, attrs)
			}
			s.buf = f.line(s.buf, s, st, fromCtx, r, attrs)
			for _, o := range f.buffers {
				if o.admits(r.level) {
					o.write(c, r.level, s.buf[start:], s.part)
				}
			}
		}
		s.ends = append(s.ends, len(s.buf))
	}
	start := 0
	for i, f := range c.formats {
		if line := s.buf[start:s.ends[i]]; len(line) > 0 {
			for _, o := range f.direct {
				if o.admits(r.level) {
					o.write(c, r.level, line, s.part)
				}
			}
		}
		start = s.ends[i]
	}
}

// line appends the line for r, cut if it is too long.
func (f *format) line(dst []byte, s *scratch, st, ctx *state, r *record, attrs []slog.Attr) []byte {
	start := len(dst)
	dst = f.append(dst, s, st, ctx, r, attrs)
	if len(dst)-start > f.maxLine {
		dst = f.cut(dst, start, s, st, ctx, r, attrs)
	}
	return dst
}

// append appends the line for r in the format f.
func (f *format) append(dst []byte, s *scratch, st, ctx *state, r *record, attrs []slog.Attr) []byte {
	switch f.kind {
	case kindConsole, kindLogfmt:
		return f.appendText(dst, s, st, ctx, r, attrs)
	case kindCustom:
		return f.appendCustom(dst, s, st, ctx, r, attrs)
	}
	return f.appendJSON(dst, &s.second, st, ctx, r, attrs)
}

func (f *format) admits(l slog.Level) bool {
	for _, o := range f.buffers {
		if o.admits(l) {
			return true
		}
	}
	for _, o := range f.direct {
		if o.admits(l) {
			return true
		}
	}
	return false
}

// tooLong reports whether a line has grown so far beyond what may be written
// that it is not worth going on: a LogValuer whose group holds itself twice
// would go on for ever.
func (f *format) tooLong(dst []byte) bool { return len(dst) > 4*f.maxLine }
