package slab

import (
	"errors"
	"fmt"
	"time"
)

// errStalled is wrapped by the errors of calls that have not returned.
var errStalled = errors.New("has not returned")

// back returns a channel that is closed when the abandoned call has returned, or nil
// if there is none.
func (o *destination) back() <-chan struct{} {
	if o == nil || o.stuck == nil {
		return nil
	}
	return o.stuck.done
}

// writing reports whether an abandoned Write is active, which may hold a slab.
func (o *destination) writing() bool { return o != nil && o.stuck != nil && o.stuck.size > 0 }

const (
	// probeEvery is the time between attempts on a destination that failed while the
	// failover is in use.
	probeEvery = 10 * time.Second
	// checks is how often within MaxWait run checks whether to fail over.
	checks = 8
)

// grace is how long the destination may fail, or a Write last, before the failover is
// used. The rest of MaxWait is for the failover's first Write.
func (w *Writer) grace() time.Duration { return w.opts.MaxWait * 3 / 4 }

// over reports whether the destination has failed for so long that lines go to the
// failover.
func (w *Writer) over(now time.Time) bool {
	first := w.io.destinations[0]
	switch {
	case w.io.destinations[1] == nil:
		return false
	case first.stuck != nil:
		return true
	case first.since.IsZero():
		return false
	}
	return w.isClosing() || now.Sub(first.since) >= w.grace()
}

// neededNow reports whether o, if it is set and works, is to be used at once: no slab
// was freed for half of MaxWait while lines found no room, or under Bounded a call has
// waited that long.
func (w *Writer) neededNow(o *destination) bool {
	if o == nil || o.stuck != nil || !o.since.IsZero() {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	since := w.waiters.full
	if o := w.waiters.oldest(); o > 0 && w.opts.Full == Bounded && (since == 0 || o < since) {
		since = o
	}
	return since > 0 && w.age()-since >= w.opts.MaxWait/2
}

func (w *Writer) isClosing() bool {
	select {
	case <-w.closing:
		return true
	default:
		return false
	}
}

// switchTo records that o has written something and is in use.
func (w *Writer) switchTo(o *destination) {
	if w.tally.FailingOver == o.second() {
		return
	}
	w.mu.Lock()
	w.tally.FailingOver = o.second()
	w.mu.Unlock()
	if !o.second() {
		return
	}
	why := "is too slow"
	if since := w.io.destinations[0].since; !since.IsZero() {
		why = "has failed for " + time.Since(since).Round(time.Millisecond).String()
	}
	w.teller.Tell(takeover, errors.New("slab: lines go to the failover: the destination "+why))
}

// callWithTimeout makes the call c on a new goroutine and reports whether it returned
// in time.
func (w *Writer) callWithTimeout(c *call) (returned bool) {
	c.done = make(chan struct{})
	go func() {
		defer close(c.done)
		c.do(w)
	}()
	return w.returnsInTime(c)
}

// returnsInTime waits until c returns, or its time is up.
func (w *Writer) returnsInTime(c *call) (returned bool) {
	closing := w.closing
	if w.isClosing() {
		closing = nil
	}
	look := w.opts.MaxWait / checks
	t := time.NewTimer(min(look, w.timeLeft(c, closing == nil)))
	defer t.Stop()
	for {
		select {
		case <-c.done:
			return true
		case <-t.C:
		case <-closing:
			closing = nil
		case <-w.deadline:
			return false
		}
		left := w.timeLeft(c, closing == nil)
		if left <= 0 || (c.size == 0 || !c.out.second()) && w.neededNow(w.io.destinations[1-c.out.index]) {
			return false
		}
		t.Reset(min(look, left))
	}
}

// timeLeft returns how much longer to wait for c, which has not returned.
func (w *Writer) timeLeft(c *call, closing bool) time.Duration {
	d := w.grace()
	if c.size == 0 {
		d = w.opts.CloseTimeout // the limit of a Sync
	}
	if closing {
		d = min(d, w.opts.CloseTimeout/5)
	}
	if o := c.out; !o.second() && !o.since.IsZero() && !w.tally.FailingOver { // it fails already
		d = max(d-w.born.Add(c.began).Sub(o.since), w.opts.MaxWait/checks)
	}
	return d - (w.age() - c.began)
}

// abandon stops waiting for c, which has not returned in time. The other destination
// may write c's lines meanwhile.
func (w *Writer) abandon(b *batch, c *call) {
	o := c.out
	o.stuck, c.batch = c, nil
	w.io.joined = nil // c may read it
	w.route(b, nil)
	w.mu.Lock()
	expired := w.expired
	w.failedLocked(o, stalled(o, "Write", w.age()-c.began))
	w.mu.Unlock()
	if expired {
		return
	}
	w.markStalled(o, c, "Write")
	if b.since.IsZero() {
		b.since = time.Now()
	}
}

// callMethod calls a method of o other than Write on a new goroutine, which the method
// may end. With a failover a bounded call is abandoned if it takes too long.
func (w *Writer) callMethod(o *destination, method string, bounded bool, f func() error) error {
	c := &call{out: o, began: w.age(), done: make(chan struct{}), err: exited(o.name, method)}
	go func() {
		defer close(c.done)
		c.err = guard(o.name, method, f)
	}()
	if !bounded || w.io.destinations[1] == nil {
		<-c.done
		return c.err
	}
	if w.returnsInTime(c) {
		return c.err
	}
	o.stuck = c
	return w.markStalled(o, c, method)
}

// guard calls f, a method of a destination, and returns a panic as an error.
func guard(name, method string, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = panicked(name, method, v)
		}
	}()
	return f()
}

// markStalled records that o fails since the beginning of c, and returns why.
func (w *Writer) markStalled(o *destination, c *call, method string) error {
	if o.since.IsZero() {
		o.since = w.born.Add(c.began)
	}
	o.failing = true
	err := stalled(o, method, w.age()-c.began)
	w.teller.Tell(o.topic(stalling), fmt.Errorf("slab: %w", err))
	return err
}

// stalled returns the error for a call of a method of o that lasts too long.
func stalled(o *destination, method string, lasts time.Duration) error {
	return fmt.Errorf("the %s's %s %w for %v", o.name, method, errStalled, lasts.Round(time.Millisecond))
}

// reap settles the abandoned calls that have returned, and reports whether there were
// any.
func (w *Writer) reap() (any bool) {
	for _, o := range w.io.destinations {
		if o == nil || o.stuck == nil {
			continue
		}
		select {
		case <-o.stuck.done:
		default:
			continue
		}
		any = true
		c := o.stuck
		o.stuck = nil
		if c.size > 0 {
			w.settle(c)
		} else if c.err == nil {
			o.since, o.next, o.failing = time.Time{}, time.Time{}, false
		}
	}
	return any
}

// repair tries to write the rest of a torn line to o, before o is closed.
func (w *Writer) repair(o *destination) {
	for o != nil && len(o.torn) > 0 && o.stuck == nil {
		left := len(o.torn)
		c := w.enter(new(batch), o)
		if c == nil {
			return
		}
		c.batch = nil
		if !w.callWithTimeout(c) {
			o.stuck = c
			return
		}
		if w.settle(c); len(o.torn) == left {
			return
		}
	}
}
