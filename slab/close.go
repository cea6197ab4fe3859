package slab

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Close is Shutdown bounded by Options.CloseTimeout.
func (w *Writer) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), w.opts.CloseTimeout)
	defer cancel()
	return w.Shutdown(ctx)
}

// Shutdown takes no more lines, releases the producers that wait with
// os.ErrClosed, and waits until everything accepted has been written and, with
// Options.CloseDestination, the destination closed.
//
// If ctx ends first nothing is tried again: lines that are not inside a Write
// of the destination are dropped and counted as Drops.Shutdown, or with
// Options.Persist stay pending, for the next process. Those inside
// one stay pending, since a Write cannot be called back; when it returns they
// are counted as what became of them and the goroutine ends.
//
// The error says what was lost and why: lines given up since New, lines lost
// here, the destination's error on Close. All calls of Shutdown and Close
// return the same one, and the earliest of their deadlines counts.
func (w *Writer) Shutdown(ctx context.Context) error {
	w.mu.Lock()
	var expelled *waiter
	if !w.closed {
		w.closed = true
		close(w.closing)
		expelled = w.expelLocked()
		w.sealLocked()
	}
	wake := w.parked
	w.parked, w.dozing = false, false
	w.mu.Unlock()
	signal(expelled)
	if wake {
		w.wakeUp()
	}

	select {
	case <-w.finished:
	case <-ctx.Done():
		w.cutOff(ctx)
	}
	if w.leaves {
		<-w.left // so that the next Writer finds the file free
	}
	return w.closeErr
}

// cutOff ends the drain, unless it has ended by itself.
func (w *Writer) cutOff(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.finished:
		return
	default:
	}
	w.abandoned = true
	close(w.abandon)

	lost, kept := w.dropQueueLocked()
	lost += w.dropRestLocked()
	left := w.flight.main.lines + w.flight.front.lines
	if s := w.flight.slab; s != nil && s.begun && !w.coveredLocked(&w.flight.main) {
		kept += w.flight.main.lines
		left -= w.flight.main.lines
	}
	if w.flight.held != nil && !w.coveredLocked(&w.flight.front) {
		kept += w.flight.front.lines
		left -= w.flight.front.lines
	}

	err := ctx.Err()
	inside := w.insideLocked()
	if kept > 0 {
		err = fmt.Errorf("%s kept in %s for the next start: %w", count(kept), w.opts.Persist, err)
	}
	switch {
	case lost > 0 || left > 0:
		err = fmt.Errorf("%s dropped, %d inside a write that has not returned: %w", count(lost), left, err)
	case inside != "":
		err = fmt.Errorf("the %s has not returned: %w", inside, err)
	}
	if w.tally.lastErr != nil {
		err = fmt.Errorf("%w, the destination says: %w", err, w.tally.lastErr)
	}
	w.leaves = inside == ""
	w.endLocked(err)
}

// dropQueueLocked drops the lines of the queue, but for those that a file keeps.
func (w *Writer) dropQueueLocked() (lost, kept uint64) {
	for n := w.queue.n; n > 0; n-- {
		s := w.queue.pop()
		if s.begun {
			kept += uint64(s.lines)
			w.queue.push(s) // and pending
			continue
		}
		lost += w.tally.dropped.add(shutdown, s.countBy(0))
		s.data = nil
		w.filling.free = append(w.filling.free, s)
	}
	return lost, kept
}

// finish closes the destinations if asked to and ends Shutdown. It is the last
// thing run does. Shutdown waits for calls that were left behind if their
// destination is to be closed; run waits for all, to settle them.
func (w *Writer) finish() {
	var errs []error
	ended, left := false, false
	for open := w.io.outlets; ; {
		if !left && !w.io.outlets[0].writing() && !w.io.outlets[1].writing() {
			errs = append(errs, w.leaveFile())
			left = true
		}
		for i, o := range open {
			if o != nil && !ended {
				w.mend(o)
			}
			if o != nil && o.stuck == nil {
				errs = append(errs, w.closeOutlet(o))
				open[i] = nil
			}
		}
		waits := open != [2]*outlet{}
		if !ended && !(waits && w.opts.CloseDestination) {
			w.conclude(errors.Join(errs...))
			ended = true
		}
		if !waits {
			break
		}
		select {
		case <-open[0].back():
		case <-open[1].back():
		}
		w.reap()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.flight.slab; s != nil && !s.begun { // its lines were dropped by Shutdown
		w.flight.slab, w.flight.main = nil, batch{}
		w.freeLocked(s)
	}
}

// conclude ends Shutdown with err, unless its deadline has.
func (w *Writer) conclude(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.abandoned {
		w.endLocked(err)
	}
}

// closeOutlet closes o if asked to.
func (w *Writer) closeOutlet(o *outlet) error {
	c, ok := o.w.(io.Closer)
	if !ok || !w.opts.CloseDestination {
		return nil
	}
	w.setInside(o.name + "'s Close")
	defer w.setInside("")
	if err := w.apart(o, "Close", false, c.Close); err != nil {
		return fmt.Errorf("close the %s: %w", o.name, err)
	}
	return nil
}

// endLocked sets the result of Shutdown: err and what was given up before.
func (w *Writer) endLocked(err error) {
	if n := w.tally.dropped.of(gaveUp); n > 0 {
		err = errors.Join(fmt.Errorf("gave up %s: %w", count(n), w.tally.lossErr), err)
	}
	if err != nil {
		w.closeErr = fmt.Errorf("slab: close: %w", err)
	}
	close(w.finished)
}
