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

	// An episode of failure begins with a call of Write that fails and ends with
	// one that does not.
	failing  bool
	blamed   bool      // a loss of this episode was reported to OnError
	reported time.Time // when OnError last heard of this outlet
	since    time.Time // when the first call began that failed after the last progress
	tries    int       // calls that failed since the last progress
	next     time.Time // when it may be called again
	asked    bool      // next is what the destination asked for

	stuck   *call  // one that was left behind and has not returned, or nil
	torn    []byte // rest of a line of which it has a part, to be written first
	tornPos uint64 // number of that line's first byte; see batch.pos
	dirty   bool   // it has taken bytes since it was last synced
}

// index returns the place of o in arrays of both.
func (o *outlet) index() int {
	if o.second {
		return 1
	}
	return 0
}

// call is one call of an outlet's Write, or of another method, in which case it
// has no p.
type call struct {
	out   *outlet
	batch *batch // that it is made for; nil once the call was left behind
	p     []byte
	pos   uint64        // number of p[0]; see batch.pos
	mend  bool          // p is a part of outlet.torn
	whole bool          // p begins with a whole line
	slab  *slab         // which holds p, or nil
	began time.Duration // as age returns it
	done  chan struct{} // closed when the call has returned; nil if run itself makes it

	// the result
	n      int           // in range, and less than len(p) only with an error
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
		b.out.torn = bytes.Clone(b.data[b.off:lineEnd(b.data, b.off)])
		b.out.tornPos = b.pos + uint64(b.whole)
	}
	b.out, b.off = o, b.whole
	if o != nil && len(o.torn) > 0 && o.tornPos == b.pos+uint64(b.whole) {
		b.off = lineEnd(b.data, b.whole) - len(o.torn)
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
	*c = call{out: o, batch: b, p: b.data[b.off:], pos: b.pos + uint64(b.off), began: w.age()}
	c.whole = b.off == b.whole
	if len(o.torn) > 0 {
		c.p, c.mend = o.torn, true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.abandoned {
		return nil
	}
	if b == &w.flight.main && !c.mend {
		c.slab = w.flight.slab
	}
	if b.tried {
		w.tally.retries++
	}
	b.tried = true
	w.io.used = o
	w.flight.calls[o.index()] = c
	return c
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
	n, err := 0, c.mark(&w.kept)
	if err == nil {
		n, err = c.out.w.Write(c.p)
	}
	c.n = min(max(n, 0), len(c.p))
	if c.n < len(c.p) && err == nil {
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
	if o == w.io.used {
		t.lastErr = c.err
	}
	if c.n > 0 {
		f.mute = false
	}
	b := c.batch
	if b == nil {
		b = w.batchOf(c)
	}
	w.advanceLocked(b, c)
	if w.abandoned {
		w.dropRestLocked()
	}
	var served, more *waiter
	if c.slab != nil && c.slab != f.slab && !w.usedLocked(c.slab) {
		served = w.freeLocked(c.slab) // the other outlet was faster
	}
	abandoned := w.abandoned
	if b != nil && b.whole == len(b.data) && !abandoned {
		more = w.doneLocked(b)
		b = nil
	}
	w.mu.Unlock()
	signal(served)
	signal(more)
	if !abandoned {
		w.judge(b, c)
	}
}

// batchOf returns the batch that c, which was left behind, writes a part of, or
// nil if that is done.
func (w *Writer) batchOf(c *call) *batch {
	f := &w.flight
	if f.slab != nil && f.main.holds(c) {
		return &f.main
	}
	if f.front.data != nil && f.front.holds(c) {
		return &f.front
	}
	return nil
}

// advanceLocked moves b, or nil, and the outlet's stream by what c has written.
func (w *Writer) advanceLocked(b *batch, c *call) {
	o := c.out
	if c.mend {
		o.torn = o.torn[c.n:]
		return
	}
	if c.batch != nil { // the usual case
		b.off += c.n
		w.creditLocked(b, b.off, o)
		return
	}
	// The outlet was left while the call was under way.
	if c.n > 0 {
		w.tear(c)
	}
	if b == nil {
		return
	}
	if end := int(c.pos-b.pos) + c.n; end > b.whole {
		w.aim(b, nil)
		w.creditLocked(b, end, o)
		b.off = b.whole
	}
}

// tear notes where the stream of c's outlet stands after c, which has written
// something and was left behind.
func (w *Writer) tear(c *call) {
	o := c.out
	switch nl := bytes.LastIndexByte(c.p[:c.n], '\n'); {
	case nl == c.n-1:
		o.torn = nil
		return
	case nl >= 0:
		o.tornPos = c.pos + uint64(nl) + 1
	case len(o.torn) == 0:
		o.tornPos = c.pos
	}
	o.torn = bytes.Clone(c.p[c.n:lineEnd(c.p, c.n)])
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
	if w.io.lastWord && b == &w.flight.front && b.notice != (counts{}) && !w.torn(b) {
		w.setFront(batch{}) // a notice alone does not hold up Close
		return
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
		wait = max(wait, w.opts.FailoverProbe)
	}
	o.next = now.Add(wait)
}
