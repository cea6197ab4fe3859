package slab

import (
	"errors"
	"fmt"
	"time"
)

// errStalled is what a call has come to that has not returned.
var errStalled = errors.New("has not returned")

// back returns a channel that is closed when the call that was left behind has
// returned, or nil if there is none.
func (o *outlet) back() <-chan struct{} {
	if o == nil || o.stuck == nil {
		return nil
	}
	return o.stuck.done
}

// writing reports whether a Write was left behind, which may hold a slab.
func (o *outlet) writing() bool { return o != nil && o.stuck != nil && o.stuck.size > 0 }

const (
	// probeEvery is how long a destination that was left because it failed is
	// spared before it gets the next slab as a trial.
	probeEvery = 10 * time.Second
	// looks is how often within MaxWait run looks whether it has to leave a
	// destination.
	looks = 8
)

// grace is how long the destination may fail, or a Write last, before the
// failover takes over: so that it has done so within MaxWait.
func (w *Writer) grace() time.Duration { return w.opts.MaxWait * 3 / 4 }

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
	return w.isClosing() || now.Sub(first.since) >= w.grace()
}

// hastens reports whether o, if there is one and it works, is to be used at once:
// lines have found no room for half of MaxWait in which no slab was freed, or
// under Bounded a call has waited for so long.
func (w *Writer) hastens(o *outlet) bool {
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

// comeOver notes that o has taken something and is in use.
func (w *Writer) comeOver(o *outlet) {
	if w.flight.over == o.second {
		return
	}
	w.mu.Lock()
	w.flight.over = o.second
	w.mu.Unlock()
	if !o.second {
		return
	}
	why := "is too slow"
	if since := w.io.outlets[0].since; !since.IsZero() {
		why = "has failed for " + time.Since(since).Round(time.Millisecond).String()
	}
	w.teller.Tell(takeover, errors.New("slab: lines go to the failover: the destination "+why))
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
	look := w.opts.MaxWait / looks
	t := time.NewTimer(min(look, w.timeFor(c, closing == nil)))
	defer t.Stop()
	for {
		select {
		case <-c.done:
			return true
		case <-t.C:
		case <-closing:
			closing = nil
		case <-w.abandon:
			return false
		}
		left := w.timeFor(c, closing == nil)
		if left <= 0 || (c.size == 0 || !c.out.second) && w.hastens(w.io.outlets[1-c.out.index()]) {
			return false
		}
		t.Reset(min(look, left))
	}
}

// timeFor returns how long c, which has not returned, is still waited for.
func (w *Writer) timeFor(c *call, closing bool) time.Duration {
	d := w.grace()
	if c.size == 0 {
		d = w.opts.CloseTimeout // what a Sync may take
	}
	if closing {
		d = min(d, w.opts.CloseTimeout/5)
	}
	if o := c.out; !o.second && !o.since.IsZero() && !w.flight.over { // it fails already
		d = max(d-w.born.Add(c.began).Sub(o.since), w.opts.MaxWait/looks)
	}
	return d - (w.age() - c.began)
}

// strand leaves c behind, which has not returned in time. What it writes may go
// to the other outlet meanwhile.
func (w *Writer) strand(b *batch, c *call) {
	o := c.out
	o.stuck, c.batch = c, nil
	w.io.joined = nil // c may read it
	w.aim(b, nil)
	w.mu.Lock()
	abandoned := w.abandoned
	w.failedLocked(o, stalled(o, "Write", w.age()-c.began))
	w.mu.Unlock()
	if abandoned {
		return
	}
	w.suspect(o, c, "Write")
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
	return w.suspect(o, c, method)
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

// suspect makes o one that fails, since the beginning of c, and returns why.
func (w *Writer) suspect(o *outlet, c *call, method string) error {
	if o.since.IsZero() {
		o.since = w.born.Add(c.began)
	}
	o.failing = true
	err := stalled(o, method, w.age()-c.began)
	w.teller.Tell(o.topic(stalling), fmt.Errorf("slab: %w", err))
	return err
}

// stalled is the error for a call of a method of o that has lasted for so long.
func stalled(o *outlet, method string, lasts time.Duration) error {
	return fmt.Errorf("the %s's %s %w for %v", o.name, method, errStalled, lasts.Round(time.Millisecond))
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
		if c.size > 0 {
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
