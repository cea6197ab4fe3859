package slab

import (
	"fmt"
	"time"

	"github.com/rollway/rollway/internal/backoff"
)

// The waits between the attempts of a write that fails.
const (
	firstRetry = 10 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// pick returns the outlet that b goes to next, once it may be called. It
// returns nil if there is something else to do before: b was given up or is
// written, or the Writer has been abandoned.
func (w *Writer) pick(b *batch) *outlet {
	first, second := w.io.outlets[0], w.io.outlets[1]
	if first.stuck == nil && first.next.IsZero() && !w.hastens(second) {
		return first
	}
	for {
		if w.reap() {
			return nil
		}
		now := time.Now()
		hastens := w.hastens(second)
		var until time.Time // zero is for ever
		by := func(t time.Time) {
			if until.IsZero() || t.Before(until) {
				until = t
			}
		}
		if giveUp := w.opts.GiveUp; giveUp > 0 && !b.since.IsZero() && !w.covered(b) {
			end := b.since.Add(giveUp)
			if !end.After(now) {
				w.giveUp(b)
				return nil
			}
			by(end)
		}
		if first.stuck == nil && !hastens {
			if !first.next.After(now) {
				return first
			}
			by(first.next)
		}
		if hastens || w.over(now) {
			if second.stuck == nil {
				if !second.next.After(now) {
					return second
				}
				by(second.next)
			}
		} else if second != nil {
			by(now.Add(w.opts.MaxWait / looks))
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
	d := backoff.Wait(o.tries, firstRetry, lastRetry)
	o.tries++
	return d
}

// failing reports whether the outlet in use fails.
func (w *Writer) failing() bool { return w.io.used != nil && w.io.used.failing }

// report notes whether o fails, by the result of a call of it, and tells OnError.
func (w *Writer) report(o *outlet, err error) {
	o.failing = err != nil
	if err != nil {
		w.teller.Tell(o.topic(failing), fmt.Errorf("slab: write to the %s: %w", o.name, err))
	}
}
