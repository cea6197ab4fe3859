package rollway

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rollway/rollway/internal/encode"
	"github.com/rollway/rollway/internal/goid"
)

// scratch is the memory for one record. The call that took it from the pool owns it
// until it puts it back.
type scratch struct {
	encode.Scratch
	from  origin
	ends  []int       // end of each format's line in Buf; the first begins at 0
	waits []waiting   // outputs that did not take their line at once
	attrs []slog.Attr // of a slog.Record
	outer []slog.Attr // from Options.Extract, and the stack
	part  uint32      // of a counter; spreads the processors
}

var (
	scratchPool = sync.Pool{New: func() any {
		return &scratch{Scratch: encode.Scratch{Buf: make([]byte, 0, 1024)}, ends: make([]int, 0, 4), part: scratches.Add(1)}
	}}
	scratches atomic.Uint32
)

func (s *scratch) free() {
	if !s.Reset() || cap(s.attrs)+cap(s.outer) > encode.MaxKept/64 {
		return
	}
	if len(s.attrs)+len(s.outer) > 0 {
		clear(s.attrs) // keeps no value alive
		clear(s.outer)
		s.attrs, s.outer = s.attrs[:0], s.outer[:0]
	}
	scratchPool.Put(s)
}

const stackKey = "stack" // of the attribute that Options.Stack adds

// complete adds to r what Options ask for, and returns the attributes to write. trace
// is the stack of the call, or "". It is called if the core has extras or the record
// a stack.
func (l *Logger) complete(ctx context.Context, s *scratch, r *encode.Record, attrs []slog.Attr, trace string) []slog.Attr {
	c := l.core
	if c.trace != nil && ctx != nil {
		c.traceOf(ctx, r)
	}
	if len(c.extract) > 0 && ctx != nil {
		c.extractFrom(ctx, s)
	}
	if c.custom {
		r.Context = ctx
	}
	attrs = c.rewrite(l.groups, attrs)
	c.rewriteFields(r)
	grouped := len(l.groups) > 0
	if trace != "" && (grouped || !encode.HasKey(attrs, stackKey)) {
		s.outer = append(s.outer, c.rewrite(nil, []slog.Attr{slog.String(stackKey, trace)})...)
	}
	switch {
	case grouped:
		r.Outer = s.outer
	case len(s.outer) > 0:
		s.outer = append(s.outer, attrs...)
		return s.outer
	}
	return attrs
}

// rewrite returns attrs, which are in groups, as Options.ReplaceAttr and Redact want them.
func (c *core) rewrite(groups []string, attrs []slog.Attr) []slog.Attr {
	if c.replace != nil {
		attrs = c.replace.Attrs(groups, attrs)
	}
	if c.redact != nil {
		attrs = c.redact.Attrs(groups, attrs)
	}
	return attrs
}

// rewriteFields does so for the fields of r.
func (c *core) rewriteFields(r *encode.Record) {
	if c.replace != nil {
		c.replace.Fields(r)
	}
	if c.redact != nil {
		r.Message = c.redact.Text(r.Message)
		if r.Replaced != nil {
			r.Replaced.Redact(c.redact)
		}
	}
}

// emit encodes r once per format and hands the line to each output that admits it. ctx
// holds what the context adds for each format, or is nil.
func (c *core) emit(s *scratch, scopes, ctx []encode.Scope, r *encode.Record, attrs []slog.Attr) {
	s.Buf, s.ends = s.Buf[:0], s.ends[:0]
	for i, f := range c.formats {
		if f.admits(r.Level) {
			s.Buf = f.Line(s.Buf, &s.Scratch, &scopes[i], f.scopeIn(ctx), r, attrs)
		}
		s.ends = append(s.ends, len(s.Buf))
	}
	c.serve(s, r.Level)
}

// waiting is a line that an output can take only after a wait: Scratch.Buf[from:to].
type waiting struct {
	o        *output
	from, to int
}

// serve hands the lines in s to their outputs so that none delays another: first to
// those that buffer and have room, then to direct ones that are not busy, and then,
// all at the same time, to those that must be awaited. It returns when each has taken
// or dropped its line, so that the lines of a goroutine keep their order. Only a
// direct output that hangs in this very call keeps the line from the outputs after
// it.
func (c *core) serve(s *scratch, level slog.Level) {
	s.waits = s.waits[:0]
	start := 0
	for i, f := range c.formats {
		end := s.ends[i]
		if start < end { // an output takes this level
			for _, o := range f.buffers {
				if o.admits(level) && !o.tryBuffer(c, level, s.Buf[start:end], s.part) {
					s.waits = append(s.waits, waiting{o, start, end})
				}
			}
		}
		start = end
	}
	start = 0
	for i, f := range c.formats {
		end := s.ends[i]
		if start < end {
			for _, o := range f.direct {
				if o.admits(level) && !o.tryDirect(c, s.Buf[start:end], s.part) {
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

// serveWaiting serves the outputs that did not take their line at once. Those that
// must be awaited get a goroutine each, except the last. Writers that buffer and have
// no TryWriteLevel bound their waits themselves; they are called meanwhile, one after
// the other.
func (c *core) serveWaiting(s *scratch, level slog.Level) {
	waits := s.waits
	if len(waits) > 1 { // a direct one may be idle by now
		waits = slices.DeleteFunc(waits, func(w waiting) bool {
			if w.o.buffer != nil || !w.o.lock.spin(lineTurn, false) {
				return false
			}
			_ = w.o.settle(c, w.o.callDirect(c, s.Buf[w.from:w.to]), s.part)
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
		others.Go(func() { // a writer that keeps an order per goroutine takes the line as the caller's
			goid.StandIn(self, func() { w.o.write(c, level, s.Buf[w.from:w.to], s.part) })
		})
	}
	for _, w := range waits {
		if w.o != nil {
			w.o.write(c, level, s.Buf[w.from:w.to], s.part)
		}
	}
	if others != nil {
		others.Wait()
	}
	clear(s.waits[:cap(s.waits)]) // keeps no output alive
}

// scopeIn returns what the context of a call adds in f, or nil.
func (f *format) scopeIn(ctx []encode.Scope) *encode.Scope {
	if ctx == nil {
		return nil
	}
	return &ctx[f.index]
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
