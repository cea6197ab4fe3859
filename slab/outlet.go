package slab

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"
)

// outlet is the destination or the failover, owned by run.
type outlet struct {
	w      io.Writer
	name   string
	second bool // the failover

	vectored bool // it takes several buffers in one call

	// An episode of failure begins with a call of Write that fails and ends with
	// one that does not.
	failing bool
	since   time.Time // when the first call began that failed after the last progress
	tries   int       // calls that failed since the last progress
	next    time.Time // when it may be called again
	asked   bool      // next is what the destination asked for

	stuck   *call  // one that was left behind and has not returned, or nil
	torn    []byte // rest of a line of which it has a part, to be written first
	tornPos uint64 // number of that line's first byte; see batch.pos
	dirty   bool   // it has taken bytes since it was last synced
}

// A bufferWriter is a destination that takes many buffers in one call. Each
// buffer ends with a line end; lines is how many there are in all. The destination
// may change the list, and what lies after the end of a buffer up to its
// capacity. It returns how many bytes it has taken, all of them if err is nil.
type bufferWriter interface {
	WriteBuffers(buffers [][]byte, lines uint64) (n int64, err error)
}

// isVectored reports whether dst takes several buffers in one call.
func isVectored(dst io.Writer) bool {
	_, is := dst.(bufferWriter)
	return is
}

// write calls the method that o has for c.
func (o *outlet) write(c *call) (n int64, err error) {
	if !o.vectored {
		n, err := o.w.Write(c.bufs[0])
		return int64(n), err
	}
	bufs := c.bufs
	if c.done != nil { // it may be left behind, and what it was given is looked at
		bufs = make([][]byte, len(c.bufs))
		for i, p := range c.bufs {
			bufs[i] = p[:len(p):len(p)] // the other outlet may read it at the same time
		}
	}
	return o.w.(bufferWriter).WriteBuffers(bufs, c.lines)
}

// index returns the place of o in arrays of both.
func (o *outlet) index() int {
	if o.second {
		return 1
	}
	return 0
}

// topic returns the one of o of two that follow each other.
func (o *outlet) topic(of int) int { return of + o.index() }

// call is one call of an outlet's Write, or of another method, in which case its
// size is 0.
type call struct {
	out   *outlet
	batch *batch        // that it is made for; nil once the call was left behind
	bufs  [][]byte      // what is written, each up to the end of a line
	size  int           // of bufs, in bytes
	lines uint64        // in bufs
	pos   uint64        // number of the first byte; see batch.pos
	mend  bool          // it writes a part of outlet.torn
	whole bool          // it begins with a whole line
	slab  *slab         // that it begins in, or nil
	more  []*slab       // those after it in the queue that it writes as well
	began time.Duration // as age returns it
	done  chan struct{} // closed when the call has returned; nil if run itself makes it

	// the result
	n      int           // in range, and less than size only with an error
	after  time.Duration // how long the error asks to be left alone
	err    error
	took   time.Duration
	exited bool // the goroutine of the call was ended
}

// attempt writes, once, what comes next to the outlet whose turn it is.
func (w *Writer) attempt() {
	b := w.current()
	o := w.pick(b)
	if o == nil {
		return
	}
	w.aim(b, o)
	c := w.enter(b, o)
	switch {
	case c == nil:
	case w.io.outlets[1] == nil:
		c.do(w)
		w.settle(c)
	case w.bide(c):
		w.settle(c)
	default:
		w.strand(b, c)
	}
}

// age returns the time since New. It reads one clock where time.Now reads two.
func (w *Writer) age() time.Duration { return time.Since(w.born) }

// aim makes o the one that b goes to, from the start of the first line that is
// not known to be whole, or from within it if o has its beginning.
func (w *Writer) aim(b *batch, o *outlet) {
	if b.out == o {
		return
	}
	if b.out != nil && b.off > b.whole {
		b.out.torn = bytes.Clone(b.rest(b.off)[:b.lineEnd(b.off)-b.off])
		b.out.tornPos = b.pos + uint64(b.whole)
	}
	b.out, b.off = o, b.whole
	if o != nil && len(o.torn) > 0 && o.tornPos == b.pos+uint64(b.whole) {
		b.off = b.lineEnd(b.whole) - len(o.torn)
		o.torn = nil
	}
}

// enter books that a call of o's Write begins, for b, and returns it, or nil
// if the Writer has been abandoned: then no method may be called but Close.
func (w *Writer) enter(b *batch, o *outlet) *call {
	c := &w.io.call
	if w.io.outlets[1] != nil {
		c = new(call) // it may be left behind
	}
	*c = call{out: o, bufs: c.bufs[:0], more: c.more[:0], batch: b, began: w.age()}
	if len(o.torn) > 0 {
		c.mend = true
		c.add(o.torn, 1)
	} else {
		c.pos, c.whole = b.pos+uint64(b.off), b.off == b.whole
		w.fill(c, b)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.abandoned {
		return nil
	}
	if !c.mend {
		c.lines += b.lines
	}
	if b == &w.flight.main && !c.mend {
		c.slab = w.flight.slab
		c.slab.held++
		if o.vectored {
			w.gatherLocked(c)
		}
	}
	b.tried = true
	w.io.used = o
	w.flight.calls[o.index()] = c
	if w.io.outlets[1] == nil {
		w.watchLocked()
	}
	return c
}

// fill adds to c what is left of b. The lines of its slab are counted under mu.
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

// gatherLocked adds to c, which begins in the slab in hand, those after it in the
// queue, up to mostVectored bytes and half of all slabs: the others are to be
// filled meanwhile. With a failover it is a quarter, as a call that hangs holds
// its slabs. A slab before which lines were lost begins a call, with the notices.
func (w *Writer) gatherLocked(c *call) {
	most := w.opts.SlabCount / 2
	if w.io.outlets[1] != nil {
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
		if c.size+len(s.data) > mostVectored || s.gap != (counts{}) && !w.opts.NoNotice {
			return
		}
		w.numberLocked(s)
		s.held++
		c.more = append(c.more, s)
		c.add(s.data, uint64(s.lines))
	}
}

// mostVectored is how many bytes one call gets at most, except in one slab: so
// that slabs are free soon, and the longest call is about as long as others.
const mostVectored = 8 << 20

func (c *call) add(p []byte, lines uint64) {
	c.bufs = append(c.bufs, p)
	c.size += len(p)
	c.lines += lines
}

// do calls Write for w.
func (c *call) do(w *Writer) {
	returned, finished := false, false
	defer func() {
		c.took = w.age() - c.began
		switch v := recover(); {
		case finished:
		case v != nil && !returned:
			c.err = panicked(c.out.name, "Write", v)
		case v == nil && !returned:
			c.err, c.exited = exited(c.out.name, "Write"), true
		case v == nil:
			c.exited = true
		}
	}()
	n, err := int64(0), c.mark(w)
	if err == nil {
		n, err = c.out.write(c)
	}
	c.n = int(min(max(n, 0), int64(c.size)))
	if c.n < c.size && err == nil {
		err = io.ErrShortWrite
	}
	c.err = err
	returned = true
	if err != nil {
		c.after = retryAfter(err)
	}
	finished = true
}

// retryAfter returns how long err asks to be left alone.
func retryAfter(err error) time.Duration {
	var asks interface{ RetryAfter() time.Duration }
	if errors.As(err, &asks) {
		return max(asks.RetryAfter(), 0)
	}
	return 0
}

// panicked turns what a method of a destination panicked with into an error.
func panicked(name, method string, v any) error {
	if err, ok := v.(error); ok {
		return fmt.Errorf("slab: %s panicked in %s: %w", name, method, err)
	}
	return fmt.Errorf("slab: %s panicked in %s: %v", name, method, v)
}

// exited is the error of a method that has called runtime.Goexit.
func exited(name, method string) error {
	return fmt.Errorf("slab: %s ended its goroutine in %s", name, method)
}

// settle books what a call of Write has done.
func (w *Writer) settle(c *call) {
	o := c.out
	c.exited = false
	w.mu.Lock()
	f, t := &w.flight, &w.tally
	f.calls[o.index()] = nil
	t.writes++
	t.writeTime += c.took
	t.writeMax = max(t.writeMax, c.took)
	t.bytes += uint64(c.n)
	if c.err != nil {
		t.errors++
	}
	w.failedLocked(o, c.err)
	if c.n > 0 {
		f.vain = false
		if c.batch == nil && !c.mend {
			w.tear(c)
		}
	}
	if c.slab != nil {
		w.letGoLocked(c.slab)
		for _, s := range c.more {
			w.letGoLocked(s)
		}
	}
	b := w.advanceLocked(c)
	abandoned := w.abandoned
	if abandoned {
		w.dropRestLocked()
	}
	w.unlockServed()
	if !abandoned {
		w.judge(b, c)
	}
}

// letGoLocked ends that a call holds s, which is free now if the other outlet was
// faster.
func (w *Writer) letGoLocked(s *slab) {
	if s.held--; s.held == 0 && s.over {
		w.freeLocked(s)
	}
}

// batchOf returns the batch in hand that c writes a part of, or nil.
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

// advanceLocked books what c has written and takes one slab after another in
// hand as it comes to it. It returns the batch that c has ended in, or nil if
// nothing is left of that.
func (w *Writer) advanceLocked(c *call) (b *batch) {
	o := c.out
	if c.mend {
		o.torn = o.torn[c.n:]
		return c.batch
	}
	late := c.batch == nil // the outlet was left while the call was under way
	for b = w.batchOf(c); b != nil; b = &w.flight.main {
		end := int(c.pos-b.pos) + c.n
		switch here := min(end, b.size()); {
		case !late:
			b.out, b.off, b.tried = o, here, true
			w.creditLocked(b, here, o)
		case here > b.whole:
			w.aim(b, nil)
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
		w.launchLocked()
	}
	return nil
}

// tear notes where the stream of c's outlet stands after c, which has written
// something and was left behind.
func (w *Writer) tear(c *call) {
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

// judge draws the consequences of c for its outlet and for b, the batch that c
// was for, or nil.
func (w *Writer) judge(b *batch, c *call) {
	o := c.out
	w.report(o, c.err)
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
		w.comeOver(o)
		return
	}
	if b == &w.flight.front && b.notice != (counts{}) && !w.torn(b) && !w.covered(b) {
		// Notices alone hold up neither lines nor Close.
		w.mu.Lock()
		if !w.io.lastWord {
			w.flight.owed.add(b.unsaid(b.whole))
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
	wait := max(w.backoff(o), c.after)
	if !o.second && w.over(now) {
		wait = max(wait, probeEvery)
	}
	o.next = now.Add(wait)
}
