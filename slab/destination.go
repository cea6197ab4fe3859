package slab

import (
	"bytes"
	"fmt"
	"io"
	"time"

	"github.com/rollway/rollway/internal/backoff"
)

// destination is the destination or the failover, owned by run.
type destination struct {
	w     io.Writer
	name  string
	index int // in arrays of both: 0 of the destination, 1 of the failover

	vectored bool // it has WriteBuffers

	// A failure lasts from a Write that fails until one that succeeds.
	failing bool
	since   time.Time // when the first call after the last progress that failed began
	tries   int       // calls that failed since the last progress
	next    time.Time // when it may be called again
	asked   bool      // the destination asked for next

	stuck   *call  // an abandoned call that has not returned, or nil
	torn    []byte // rest of a line that it has a part of, to be written first
	tornPos uint64 // number of that line's first byte; see batch.pos
	dirty   bool   // it has written bytes since its last Sync
}

// A bufferWriter is a destination that takes several buffers in one call. Each
// buffer ends with a newline; lines is the number of lines in all of them. The
// destination may change the list, and each buffer's memory between its length and its
// capacity. It returns how many bytes it has written: all of them if err is nil.
type bufferWriter interface {
	WriteBuffers(buffers [][]byte, lines uint64) (n int64, err error)
}

// isVectored reports whether dst takes several buffers in one call.
func isVectored(dst io.Writer) bool {
	_, is := dst.(bufferWriter)
	return is
}

// write calls the method that o has for c.
func (o *destination) write(c *call) (n int64, err error) {
	if !o.vectored {
		n, err := o.w.Write(c.bufs[0])
		return int64(n), err
	}
	bufs := c.bufs
	if c.done != nil { // it may be abandoned, and its buffers are read later
		bufs = make([][]byte, len(c.bufs))
		for i, p := range c.bufs {
			bufs[i] = p[:len(p):len(p)] // the other destination may read it at the same time
		}
	}
	return o.w.(bufferWriter).WriteBuffers(bufs, c.lines)
}

// second reports whether o is the failover.
func (o *destination) second() bool { return o.index == 1 }

// topic returns the topic of o: of, or the one after it for the failover.
func (o *destination) topic(of int) int { return of + o.index }

// call is one call of an destination's Write, or of another method, in which case its
// size is 0.
type call struct {
	out    *destination
	batch  *batch        // that it is made for; nil once the call is abandoned
	bufs   [][]byte      // what is written, each up to the end of a line
	size   int           // of bufs, in bytes
	lines  uint64        // in bufs
	pos    uint64        // number of the first byte; see batch.pos
	repair bool          // it writes the rest of a torn line
	whole  bool          // it begins with a whole line
	slab   *slab         // that it begins in, or nil
	more   []*slab       // those after it in the queue that it writes as well
	began  time.Duration // as age returns it
	done   chan struct{} // closed when the call has returned; nil if run itself makes it

	// the result
	n      int           // in range, and less than size only with an error
	after  time.Duration // how long the error asks to wait
	err    error
	took   time.Duration
	exited bool // the goroutine of the call was ended
}

// attempt calls Write once, with the next bytes, for the destination in turn.
func (w *Writer) attempt() {
	b := w.current()
	o := w.pick(b)
	if o == nil {
		return
	}
	w.route(b, o)
	c := w.enter(b, o)
	switch {
	case c == nil:
	case w.io.destinations[1] == nil:
		c.do(w)
		w.settle(c)
	case w.callWithTimeout(c):
		w.settle(c)
	default:
		w.abandon(b, c)
	}
}

// age returns the time since New. It reads one clock where time.Now reads two.
func (w *Writer) age() time.Duration { return time.Since(w.born) }

// route makes o the destination of b, from the start of the first line that is not
// known to be whole, or from within that line if o has written its beginning.
func (w *Writer) route(b *batch, o *destination) {
	if b.out == o {
		return
	}
	if b.out != nil && b.off > b.whole {
		b.out.torn = bytes.Clone(b.rest(b.off)[:b.lineEnd(b.off)-b.off])
		b.out.tornPos = b.pos + uint64(b.whole)
	}
	b.out, b.off = o, b.whole
	if o != nil && o.tore(b) {
		b.off = b.lineEnd(b.whole) - len(o.torn)
		o.torn = nil
	}
}

// tore reports whether o has a part of the first line of b that is not known to be whole.
func (o *destination) tore(b *batch) bool {
	return len(o.torn) > 0 && o.tornPos == b.pos+uint64(b.whole)
}

// enter records that a call of o's Write begins, for b, and returns the call. It
// returns nil after the deadline of Shutdown: then only Close may be called.
func (w *Writer) enter(b *batch, o *destination) *call {
	c := &w.io.call
	if w.io.destinations[1] != nil {
		c = new(call) // it may be abandoned
	}
	*c = call{out: o, bufs: c.bufs[:0], more: c.more[:0], batch: b, began: w.age()}
	if len(o.torn) > 0 {
		c.repair = true
		c.add(o.torn, 1)
	} else {
		c.pos, c.whole = b.pos+uint64(b.off), b.off == b.whole
		w.fill(c, b)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.expired {
		return nil
	}
	if !c.repair {
		c.lines += b.lines
	}
	if b == &w.flight.main && !c.repair {
		c.slab = w.flight.slab
		c.slab.held++
		if o.vectored {
			w.gatherLocked(c)
		}
	}
	b.tried = true
	w.io.used = o
	w.flight.calls[o.index] = c
	if w.io.destinations[1] == nil {
		w.watchLocked()
	}
	return c
}

// fill adds the rest of b to c. The lines of its slab are counted under mu.
func (w *Writer) fill(c *call, b *batch) {
	rest := b.rest(b.off)
	if b.off >= len(b.notices) {
		c.add(rest, 0)
		return
	}
	notices := uint64(bytes.Count(rest, newline))
	if !c.out.vectored {
		joined := append(append(w.io.joined[:0], rest...), b.data...)
		if w.io.joined = nil; len(b.data) <= w.opts.SlabSize {
			w.io.joined = joined
		}
		c.add(joined, notices)
		return
	}
	c.add(rest, notices)
	if len(b.data) > 0 {
		c.add(b.data, 0)
	}
}

// gatherLocked adds to c, which begins in the loaded slab, the slabs after it in the
// queue, up to maxVectored bytes and half of all slabs: the others are filled
// meanwhile. With a failover it is a quarter, because a call that hangs holds its
// slabs. A slab with lost lines before it begins a call of its own, with the notices.
func (w *Writer) gatherLocked(c *call) {
	most := w.opts.SlabCount / 2
	if w.io.destinations[1] != nil {
		most /= 2
	}
	for i := range min(w.queue.n, most-1) {
		s := w.queue.at(i)
		if s.data == nil {
			if _, copied := s.term.end(); !copied {
				return
			}
			w.settleLocked(s)
		}
		if c.size+len(s.data) > maxVectored || s.gap != (counts{}) && !w.opts.NoNotice {
			return
		}
		w.numberLocked(s)
		s.held++
		c.more = append(c.more, s)
		c.add(s.data, uint64(s.lines))
	}
}

// maxVectored is the most bytes of several slabs in one call: it keeps calls short and
// frees slabs early.
const maxVectored = 8 << 20

func (c *call) add(p []byte, lines uint64) {
	c.bufs = append(c.bufs, p)
	c.size += len(p)
	c.lines += lines
}

// do makes the call.
func (c *call) do(w *Writer) {
	c.exited = true // unless it returns
	defer func() {
		if c.took = w.age() - c.began; c.exited && c.err == nil {
			c.err = exited(c.out.name, "Write")
		}
	}()
	c.err = guard(c.out.name, "Write", func() error {
		if err := c.mark(w); err != nil {
			return err
		}
		n, err := c.out.write(c)
		c.n = int(min(max(n, 0), int64(c.size)))
		if c.n < c.size && err == nil {
			err = io.ErrShortWrite
		}
		return err
	})
	if c.err != nil {
		_ = guard(c.out.name, "RetryAfter", func() error {
			c.after = backoff.Asked(c.err)
			return nil
		})
	}
	c.exited = false
}

// panicked returns an error for a method of a destination that panicked with v.
func panicked(name, method string, v any) error {
	if err, ok := v.(error); ok {
		return fmt.Errorf("slab: %s panicked in %s: %w", name, method, err)
	}
	return fmt.Errorf("slab: %s panicked in %s: %v", name, method, v)
}

// exited returns an error for a method that called runtime.Goexit.
func exited(name, method string) error {
	return fmt.Errorf("slab: %s ended its goroutine in %s", name, method)
}

// settle records the result of a call of Write.
func (w *Writer) settle(c *call) {
	o := c.out
	c.exited = false
	w.mu.Lock()
	f, t := &w.flight, &w.tally
	f.calls[o.index] = nil
	t.Writes++
	t.WriteTime += c.took
	t.WriteMax = max(t.WriteMax, c.took)
	t.Bytes += uint64(c.n)
	if c.err != nil {
		t.Errors++
	}
	w.failedLocked(o, c.err)
	if c.n > 0 {
		f.timedOut = false
		if c.batch == nil && !c.repair {
			w.noteTorn(c)
		}
	}
	if c.slab != nil {
		w.unholdLocked(c.slab)
		for _, s := range c.more {
			w.unholdLocked(s)
		}
	}
	b := w.advanceLocked(c)
	expired := w.expired
	if expired {
		w.dropRestLocked()
	}
	w.unlockServed()
	if !expired {
		w.applyResult(b, c)
	}
}

// unholdLocked ends the hold of a call on s, and frees s if all its lines are accounted
// for.
func (w *Writer) unholdLocked(s *slab) {
	if s.held--; s.held == 0 && s.over {
		w.freeLocked(s)
	}
}

// batchOf returns the batch that c writes a part of, or nil.
func (w *Writer) batchOf(c *call) *batch {
	f := &w.flight
	if f.slab != nil && f.main.holds(c) {
		return &f.main
	}
	if f.front.holds(c) {
		return &f.front
	}
	return nil
}

// advanceLocked records what c has written, and loads each further slab that c reached.
// It returns the batch in which c ended, or nil if that is written as a whole.
func (w *Writer) advanceLocked(c *call) (b *batch) {
	o := c.out
	if c.repair {
		o.torn = o.torn[c.n:]
		return c.batch
	}
	late := c.batch == nil // the destination is not in use since the call was abandoned
	for b = w.batchOf(c); b != nil; b = &w.flight.main {
		end := int(c.pos-b.pos) + c.n
		switch here := min(end, b.size()); {
		case !late:
			b.out, b.off, b.tried = o, here, true
			w.creditLocked(b, here, o)
		case here > b.whole:
			w.route(b, nil)
			w.creditLocked(b, here, o)
			b.off = b.whole
		}
		if b.whole < b.size() {
			return b
		}
		more := end > b.size()
		w.doneLocked(b)
		if !more {
			return nil
		}
		w.loadLocked()
	}
	return nil
}

// noteTorn records the torn line that c, an abandoned call, has left.
func (w *Writer) noteTorn(c *call) {
	o, pos, n, p := c.out, c.pos, c.n, c.bufs[0]
	for i := 1; n > len(p); i++ {
		pos += uint64(len(p))
		n -= len(p)
		p = c.bufs[i]
	}
	switch nl := bytes.LastIndexByte(p[:n], '\n'); {
	case nl == n-1:
		o.torn = nil
		return
	case nl >= 0:
		o.tornPos = pos + uint64(nl) + 1
	case pos > c.pos || len(o.torn) == 0:
		o.tornPos = pos
	}
	o.torn = bytes.Clone(p[n:lineEnd(p, n)])
}

// applyResult updates c's destination, and b, the batch in which c ended or nil: when
// either may be tried again, and which destination is in use.
func (w *Writer) applyResult(b *batch, c *call) {
	o := c.out
	if o.failing = c.err != nil; o.failing {
		w.teller.Tell(o.topic(failing), fmt.Errorf("slab: write to the %s: %w", o.name, c.err))
	}
	o.asked = c.after > 0
	if c.err == nil || c.n > 0 {
		o.dirty = o.dirty || c.n > 0
		o.tries, o.since, o.next = 0, time.Time{}, time.Time{}
		if o.asked {
			o.next = time.Now().Add(c.after)
		}
		if b != nil {
			b.since = time.Time{}
		}
		w.switchTo(o)
		return
	}
	if b == &w.flight.front && b.notice != (counts{}) && !w.torn(b) && !w.covered(b) {
		// Notices alone hold up neither lines nor Close.
		w.mu.Lock()
		if !w.io.lastWord {
			w.flight.owed.add(b.unannounced(b.whole))
		}
		*b = batch{}
		w.mu.Unlock()
		b = nil
	}
	now := time.Now()
	if o.since.IsZero() {
		o.since = w.born.Add(c.began)
	}
	if b != nil && b.since.IsZero() {
		b.since = now
	}
	wait := max(backoff.Wait(o.tries, firstRetry, lastRetry), c.after)
	o.tries++
	if !o.second() && w.over(now) {
		wait = max(wait, probeEvery)
	}
	o.next = now.Add(wait)
}
