package rollway

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollway/rollway/internal/goid"
)

// record is one log call on its way to the encoders.
type record struct {
	sec     int64 // since 1970
	nsec    int32 // 0 to 999,999,999
	hasTime bool  // false: a slog.Record without a time
	level   slog.Level
	msg     string
	source  string // of the call, escaped for JSON, or ""
	stack   string // of the call, where it was taken before the record is completed, or ""
	unique  bool   // no key stands twice among the attributes, and all are given as those of the call

	outer []slog.Attr     // attributes that stand outside of the Logger's groups
	ctx   context.Context // of the call, where a LineEncoder wants it

	hasTrace bool
	traceID  [16]byte
	spanID   [8]byte
}

// setUnix sets the time from nanoseconds since 1970, which are not negative.
func (r *record) setUnix(ns int64) {
	r.sec, r.nsec, r.hasTime = ns/1e9, int32(ns%1e9), true
}

func (r *record) setTime(at time.Time) {
	r.sec, r.nsec, r.hasTime = at.Unix(), int32(at.Nanosecond()), true
}

func (r *record) time() time.Time { return time.Unix(r.sec, int64(r.nsec)) }

// scratch is what encoding one record needs. It is owned by the call that took
// it from the pool until it is put back.
type scratch struct {
	buf    []byte
	ends   []int       // where each format's line ends in buf; the first begins at 0
	attrs  []slog.Attr // of a slog.Record
	custom Record      // for a LineEncoder
	waits  []waiting   // outputs that did not take their line at once
	list   []slog.Attr // all attributes of a line
	groups []slog.Attr // what stands in the groups of list
	bare   [2]state    // what is left of the Logger's and the context's state then
	second secondCache
	text   textLine
	part   uint32 // of the counters; scratches of one processor mostly have their own

	collected Attrs // for LogFunc
	outer     Attrs // by Options.Extractors, and the stack
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
	if cap(s.buf) > maxKept || cap(s.attrs)+cap(s.outer.list)+cap(s.list)+cap(s.groups) > maxKept/64 {
		return
	}
	if len(s.attrs)+len(s.outer.list)+len(s.list) > 0 {
		clear(s.attrs) // keeps no value alive
		clear(s.outer.list)
		clear(s.list)
		clear(s.groups)
		s.attrs, s.outer.list, s.list = s.attrs[:0], s.outer.list[:0], s.list[:0]
	}
	scratchPool.Put(s)
}

// complete adds to r what options ask for, and returns attrs as they may be
// written. Only a core with extras has use for it, and a record with a stack.
func (l *Logger) complete(ctx context.Context, s *scratch, r *record, attrs []slog.Attr, stacked bool, skip int) []slog.Attr {
	c := l.core
	if c.trace != nil && ctx != nil {
		c.traceOf(ctx, r)
	}
	if len(c.extract) > 0 && ctx != nil {
		c.extractFrom(ctx, s)
	}
	if c.custom {
		r.ctx = ctx
	}
	if c.redact != nil {
		r.msg = c.redact.text(r.msg)
		attrs = c.redact.attrs(l.groups, attrs)
	}
	trace := r.stack
	if stacked {
		trace = stack(skip)
	}
	grouped := len(l.groups) > 0
	if trace != "" && (grouped || !hasKey(attrs, stackKey)) {
		s.outer.Add(slog.String(stackKey, trace))
	}
	switch {
	case grouped:
		r.outer = s.outer.list
	case len(s.outer.list) > 0:
		s.outer.Add(attrs...)
		return s.outer.list
	}
	return attrs
}

// emit encodes r once per format and hands the line to each output that admits
// it, last to those that encode as they write. ctx holds what the context adds for
// each format, or is nil.
func (c *core) emit(s *scratch, states, ctx []state, r *record, attrs []slog.Attr) {
	c.encode(s, states, ctx, r, attrs)
	c.serve(s, r.level)
	if len(c.emitters) > 0 {
		c.serveEmitters(s, states, ctx, r, attrs)
	}
}

// encode encodes r into s once for each early format that has an output for it.
func (c *core) encode(s *scratch, states, ctx []state, r *record, attrs []slog.Attr) {
	s.buf, s.ends = s.buf[:0], s.ends[:0]
	for i, f := range c.early {
		if f.admits(r.level) {
			s.buf = f.line(s.buf, s, &states[i], f.stateIn(ctx), r, attrs)
		}
		s.ends = append(s.ends, len(s.buf))
	}
}

// waiting is a line that an output can take only after a wait: the part of
// scratch.buf between from and to.
type waiting struct {
	o        *output
	from, to int
}

// serve hands the lines in s to their outputs, so that none holds up another:
// first to those that buffer and have room, then to direct ones that no other
// call is in, and then to those that have to be waited for, all at the same
// time. It returns when each has taken or dropped its line, so that the lines of
// a goroutine keep their order. Only a direct output that hangs in this very
// call keeps the line from those that come after it.
func (c *core) serve(s *scratch, level slog.Level) {
	s.waits = s.waits[:0]
	start := 0
	for i, f := range c.early {
		end := s.ends[i]
		if start < end { // an output takes this level
			for _, o := range f.buffers {
				if o.admits(level) && !o.tryBuffer(c, level, s.buf[start:end], s.part) {
					s.waits = append(s.waits, waiting{o, start, end})
				}
			}
		}
		start = end
	}
	start = 0
	for i, f := range c.early {
		end := s.ends[i]
		if start < end {
			for _, o := range f.direct {
				if o.admits(level) && !o.tryDirect(c, s.buf[start:end], s.part) {
					s.waits = append(s.waits, waiting{o, start, end})
				}
			}
		}
		start = end
	}
	if len(s.waits) > 0 {
		c.serveWaiting(s, level)
	}
}

// serveEmitters serves the outputs that encode as they write: first those that no
// other call is in, and then those that have to be waited for.
func (c *core) serveEmitters(s *scratch, states, ctx []state, r *record, attrs []slog.Attr) {
	s.waits = s.waits[:0]
	for _, o := range c.emitters {
		switch {
		case !o.admits(r.level):
		case o.lock.try():
			_ = o.settle(c, o.callEmitter(c, s, states, ctx, r, attrs), s.part)
		default:
			s.waits = append(s.waits, waiting{o: o})
		}
	}
	for _, w := range s.waits {
		if w.o.lock.lock(c.maxWait) {
			_ = w.o.settle(c, w.o.callEmitter(c, s, states, ctx, r, attrs), s.part)
		} else {
			_ = w.o.leaveOut(c, errStuck)
		}
	}
	clear(s.waits)
}

// serveWaiting serves the outputs that did not take their line at once. Those
// that have to be waited for get a goroutine each, except the last. Writers that
// buffer and cannot be asked bound their waits themselves; they are called
// meanwhile, one after the other.
func (c *core) serveWaiting(s *scratch, level slog.Level) {
	waits := s.waits
	if len(waits) > 1 { // a direct one may be free by now
		waits = slices.DeleteFunc(waits, func(w waiting) bool {
			if w.o.buffer != nil || !w.o.lock.spin(lineTurn, false) {
				return false
			}
			_ = w.o.settle(c, w.o.callDirect(c, s.buf[w.from:w.to]), s.part)
			return true
		})
	}
	var others *sync.WaitGroup
	left := len(waits)
	for i, w := range waits {
		if left == 1 || w.o.buffer != nil && w.o.tries == nil {
			continue
		}
		left--
		waits[i].o = nil
		if others == nil {
			others = new(sync.WaitGroup)
		}
		self := goid.Self()
		others.Go(func() { // to a writer with an order per goroutine the line is the caller's
			goid.StandIn(self, func() { w.o.write(c, level, s.buf[w.from:w.to], s.part) })
		})
	}
	for _, w := range waits {
		if w.o != nil {
			w.o.write(c, level, s.buf[w.from:w.to], s.part)
		}
	}
	if others != nil {
		others.Wait()
	}
	clear(s.waits[:cap(s.waits)]) // keeps no output alive
}

// stateIn returns what the context of a call adds in f, nil if nothing does.
func (f *format) stateIn(ctx []state) *state {
	if ctx == nil {
		return nil
	}
	return &ctx[f.index]
}

// line appends the line for r, cut if it is too long.
func (f *format) line(dst []byte, s *scratch, st, ctx *state, r *record, attrs []slog.Attr) []byte {
	start := len(dst)
	if f.kind == kindJSON { // without another call
		dst = f.appendJSON(dst, s, st, ctx, r, attrs)
	} else {
		dst = f.append(dst, s, st, ctx, r, attrs)
	}
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
	return f.appendJSON(dst, s, st, ctx, r, attrs)
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
