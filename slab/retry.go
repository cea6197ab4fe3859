package slab

import "time"

// The shortest and the longest wait between attempts.
const (
	firstRetry = 10 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// pick waits until a destination may be called for b and returns it. It returns nil if
// b was given up or written meanwhile, or the deadline of Shutdown has passed.
func (w *Writer) pick(b *batch) *destination {
	first, second := w.io.destinations[0], w.io.destinations[1]
	if first.stuck == nil && first.next.IsZero() && !w.neededNow(second) {
		return first
	}
	for {
		if w.reap() {
			return nil
		}
		now := time.Now()
		neededNow := w.neededNow(second)
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
		if first.stuck == nil && !neededNow {
			if !first.next.After(now) {
				return first
			}
			by(first.next)
		}
		if neededNow || w.over(now) {
			if second.stuck == nil {
				if !second.next.After(now) {
					return second
				}
				by(second.next)
			}
		} else if second != nil {
			by(now.Add(w.opts.MaxWait / checks))
		}
		if !w.sleep(now, until) {
			return nil
		}
	}
}

// covered reports whether an abandoned call writes a part of b.
func (w *Writer) covered(b *batch) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.coveredLocked(b)
}

// sleep waits until then, or for ever if that is zero. It returns early, with true,
// when an abandoned call returns. The first sleep during Close ends at once, so that
// the drain begins with an attempt, unless the destination asked for the wait. It
// returns false if the deadline of Shutdown passes.
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
	case <-w.io.destinations[0].back():
	case <-w.io.destinations[1].back():
	case <-closing:
		w.io.hurried = true
		for _, o := range w.io.destinations {
			if o != nil && !o.asked {
				o.tries, o.next = 0, time.Time{}
			}
		}
	case <-w.deadline:
		return false
	}
	return true
}

// failing reports whether the destination in use fails.
func (w *Writer) failing() bool { return w.io.used != nil && w.io.used.failing }
