package slab

import (
	"fmt"
	"time"

	"github.com/rollway/rollway/internal/backoff"
)

// pick returns the outlet that b goes to next, once it may be called. It
// returns nil if there is something else to do before: b was given up or is
// written, or the Writer has been abandoned.
func (w *Writer) pick(b *batch) *outlet {
	first, second := w.io.outlets[0], w.io.outlets[1]
	if first.stuck == nil && first.next.IsZero() {
		return first
	}
	for {
		if w.reap() {
			return nil
		}
		now := time.Now()
		var until time.Time // zero is for ever
		by := func(t time.Time) {
			if until.IsZero() || t.Before(until) {
				until = t
			}
		}
		if giveUp := w.opts.Retry.GiveUp; giveUp > 0 && !b.since.IsZero() && !w.covered(b) {
			end := b.since.Add(giveUp)
			if !end.After(now) {
				w.giveUp(b)
				return nil
			}
			by(end)
		}
		if first.stuck == nil {
			if !first.next.After(now) {
				return first
			}
			by(first.next)
		}
		if w.over(now) {
			if second.stuck == nil {
				if !second.next.After(now) {
					return second
				}
				by(second.next)
			}
		} else if second != nil && !first.since.IsZero() {
			by(first.since.Add(w.opts.FailoverAfter))
		}
		if !w.sleep(now, until) {
			return nil
		}
	}
}

// covered reports whether a call that was left behind is inside of b.
func (w *Writer) covered(b *batch) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.coveredLocked(b)
}

// sleep waits until then, or for ever if that is zero, and reports whether the
// Writer has not been abandoned meanwhile. It ends early when a call that was
// left behind returns. The first sleep that meets Close ends there, so that the
// drain starts with an attempt, unless the destination has asked for the wait.
func (w *Writer) sleep(now, then time.Time) bool {
	var end <-chan time.Time
	if !then.IsZero() {
		t := time.NewTimer(then.Sub(now))
		defer t.Stop()
		end = t.C
	}
	closing := w.closing
	if w.io.hurried {
		closing = nil
	}
	select {
	case <-end:
	case <-w.io.outlets[0].back():
	case <-w.io.outlets[1].back():
	case <-closing:
		w.io.hurried = true
		for _, o := range w.io.outlets {
			if o != nil && !o.asked {
				o.tries, o.next = 0, time.Time{}
			}
		}
	case <-w.abandon:
		return false
	}
	return true
}

// backoff returns how long o is left alone after one more failed call.
func (w *Writer) backoff(o *outlet) time.Duration {
	d := backoff.Wait(o.tries, w.opts.Retry.Min, w.opts.Retry.Max)
	o.tries++
	return d
}

// failing reports whether the outlet in use fails.
func (w *Writer) failing() bool { return w.io.used != nil && w.io.used.failing }

// report follows the episode of failure of o that err belongs to, or ends it,
// and tells OnError as often as Options.OnError says.
func (w *Writer) report(o *outlet, err error) {
	if err == nil {
		o.failing, o.blamed = false, false
		return
	}
	first := !o.failing
	o.failing = true
	if first || time.Since(o.reported) >= time.Second {
		o.reported = time.Now()
		w.onError(fmt.Errorf("slab: write to the %s: %w", o.name, err))
	}
}

// blame tells OnError that lines were given up, once in an episode of failure.
func (w *Writer) blame(lost uint64, err error) {
	o := w.io.used
	if !o.blamed {
		o.blamed = true
		o.reported = time.Now()
		w.onError(fmt.Errorf("slab: gave up %s after %v: %w", count(lost), w.opts.Retry.GiveUp, err))
	}
}

// onError calls OnError in a goroutine of its own, which it may end.
func (w *Writer) onError(err error) {
	if w.opts.OnError == nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		w.opts.OnError(err)
	}()
	<-done
}
