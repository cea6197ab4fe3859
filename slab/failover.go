package slab

import (
	"errors"
	"fmt"
	"time"
)

// errStalled is what a call has come to that was left behind.
var errStalled = errors.New("the call has not returned")

// back returns a channel that is closed when the call that was left behind has
// returned, or nil if there is none.
func (o *outlet) back() <-chan struct{} {
	if o == nil || o.stuck == nil {
		return nil
	}
	return o.stuck.done
}

// writing reports whether a Write was left behind, which may hold a slab.
func (o *outlet) writing() bool { return o != nil && o.stuck != nil && o.stuck.p != nil }

// over reports whether the destination has failed so long that lines go to the
// failover.
func (w *Writer) over(now time.Time) bool {
	first := w.io.outlets[0]
	switch {
	case w.io.outlets[1] == nil:
		return false
	case first.stuck != nil:
		return true
	case first.since.IsZero():
		return false
	}
	return w.isClosing() || now.Sub(first.since) >= w.opts.FailoverAfter
}

func (w *Writer) isClosing() bool {
	select {
	case <-w.closing:
		return true
	default:
		return false
	}
}

// comeOver notes that o has taken something and is in use.
func (w *Writer) comeOver(o *outlet) {
	if w.flight.over == o.second {
		return
	}
	w.mu.Lock()
	w.flight.over = o.second
	w.mu.Unlock()
	if o.second {
		w.onError(fmt.Errorf("slab: lines go to the failover: the destination has failed for %v", time.Since(w.io.outlets[0].since).Round(time.Millisecond)))
	}
}

// bide makes the call c in a goroutine of its own and reports whether it has
// returned within the time that its outlet has.
func (w *Writer) bide(c *call) (returned bool) {
	c.done = make(chan struct{})
	go func() {
		defer close(c.done)
		c.do(w)
	}()
	return w.inTime(c)
}

// inTime waits for c for as long as its outlet has.
func (w *Writer) inTime(c *call) (returned bool) {
	closing := w.closing
	if w.isClosing() {
		closing = nil
	}
	t := time.NewTimer(w.leash(c.out, closing == nil))
	defer t.Stop()
	for {
		select {
		case <-c.done:
			return true
		case <-t.C:
			return false
		case <-closing:
			closing = nil
			t.Reset(w.leash(c.out, true))
		case <-w.abandon:
			return false
		}
	}
}

// leash is how long a call of o that begins now is waited for.
func (w *Writer) leash(o *outlet, closing bool) time.Duration {
	d := w.opts.FailoverAfter
	if !o.since.IsZero() { // it fails already; what is left, or a trial
		d = max(d/10, d-time.Since(o.since))
	}
	if closing {
		d = min(d, w.opts.CloseTimeout/5)
	}
	return d
}

// strand leaves c behind, which has not returned in time. What it writes may go
// to the other outlet meanwhile.
func (w *Writer) strand(b *batch, c *call) {
	o := c.out
	o.stuck, c.batch = c, nil
	w.aim(b, nil)
	w.mu.Lock()
	abandoned := w.abandoned
	w.tally.lastErr = errStalled
	w.mu.Unlock()
	if abandoned {
		return
	}
	w.suspect(o, c)
	if b.since.IsZero() {
		b.since = time.Now()
	}
}

// apart calls a method of o other than Write in a goroutine of its own, which it
// may end. With a failover it is left behind if it takes too long.
func (w *Writer) apart(o *outlet, method string, bounded bool, f func() error) error {
	c := &call{out: o, began: w.age(), done: make(chan struct{}), err: exited(o.name, method)}
	go func() {
		defer close(c.done)
		c.err = guard(o.name, method, f)
	}()
	if !bounded || w.io.outlets[1] == nil {
		<-c.done
		return c.err
	}
	if w.inTime(c) {
		return c.err
	}
	o.stuck = c
	w.suspect(o, c)
	return fmt.Errorf("the %s's %s has not returned for %v: %w", o.name, method, (w.age() - c.began).Round(time.Millisecond), errStalled)
}

// guard calls f, a method of a destination, and turns a panic into an error.
func guard(name, method string, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = panicked(name, method, v)
		}
	}()
	return f()
}

// suspect makes o one that fails, since the beginning of c.
func (w *Writer) suspect(o *outlet, c *call) {
	if o.since.IsZero() {
		o.since = w.born.Add(c.began)
	}
	w.report(o, fmt.Errorf("%w for %v", errStalled, (w.age()-c.began).Round(time.Millisecond)))
}

// reap settles the calls that were left behind and have returned, and reports
// whether there were any.
func (w *Writer) reap() (any bool) {
	for _, o := range w.io.outlets {
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
		if c.p != nil {
			w.settle(c)
		} else if c.err == nil {
			o.since, o.next, o.failing = time.Time{}, time.Time{}, false
		}
	}
	return any
}

// mend tries to end the line of which o has a part, before o is left for good.
func (w *Writer) mend(o *outlet) {
	for o != nil && len(o.torn) > 0 && o.stuck == nil {
		left := len(o.torn)
		c := w.enter(new(batch), o)
		if c == nil {
			return
		}
		c.batch = nil
		if !w.bide(c) {
			o.stuck = c
			return
		}
		if w.settle(c); len(o.torn) == left {
			return
		}
	}
}
