package slab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/rollway/rollway/internal/aside"
	"github.com/rollway/rollway/line"
)

// Close is Shutdown bounded by Options.CloseTimeout.
func (w *Writer) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), w.opts.CloseTimeout)
	defer cancel()
	return w.Shutdown(ctx)
}

// Shutdown takes no more lines, makes waiting calls return os.ErrClosed, and waits
// until everything accepted has been written and, unless Options.KeepOpen is set, the
// destination is closed.
//
// If ctx ends first nothing is tried again. Lines that are not inside a Write of the
// destination are dropped and counted as Drops.Shutdown, or with Options.Persist stay
// pending for the next process. Lines inside a Write stay pending, since it cannot be
// canceled; when it returns they are counted by its result, and the goroutine ends. If
// the disk of Options.Persist hangs, Shutdown waits for it until a second after ctx.
//
// The error says what was lost and why. It wraps line.ErrLost if lines were given up
// since New or dropped here, line.ErrPending if some are pending, and the
// destination's error on Close. All calls of Shutdown and Close return the same error,
// and the earliest of their deadlines counts.
func (w *Writer) Shutdown(ctx context.Context) error {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		close(w.closing)
		w.rejectWaitersLocked()
		w.sealAllLocked()
	}
	w.wakeParkedUnlock()

	select {
	case <-w.finished:
	case <-ctx.Done():
		w.cutOff(ctx)
	}
	if w.leaves {
		aside.Await(w.left, time.Second) // so that the next Writer finds the file free
	} else if w.opts.Persist != "" {
		aside.Await(w.left, aside.Soon) // once the call has returned that the deadline came in
	}
	w.tellLosses(true)
	w.teller.End()
	return w.closeErr
}

// cutOff ends the drain at the deadline, unless it is complete.
func (w *Writer) cutOff(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := 0; i < w.queue.n; i++ {
		if !w.copiedLocked(w.queue.at(i)) {
			i = -1 // run may have taken some
		}
	}
	select {
	case <-w.finished:
		return
	default:
	}
	w.expired = true
	close(w.deadline)

	lost := w.dropRestLocked()
	left := w.pendingLocked(0)
	kept := w.keptLocked()
	left -= kept

	err := ctx.Err()
	in, active := w.activeLocked()
	if kept > 0 {
		err = fmt.Errorf("%w: %d, kept in %s for the next start: %w", line.ErrPending, kept, w.opts.Persist, err)
	}
	switch {
	case left > 0:
		err = fmt.Errorf("%w: %d, inside the %s, which %w: %w", line.ErrPending, left, in, errStalled, err)
	case active && lost == 0:
		err = fmt.Errorf("the %s %w: %w", in, errStalled, err)
	}
	if lost > 0 {
		err = fmt.Errorf("%w: %d: %w", line.ErrLost, lost, err)
	}
	err = because(err, w.tally.failing)
	w.leaves = !active
	w.endLocked(err)
}

// keptLocked returns how many lines the file keeps that no active call writes.
func (w *Writer) keptLocked() (kept uint64) {
	f := &w.flight
	for i := range w.queue.n {
		if s := w.queue.at(i); s.begun {
			kept += uint64(s.lines)
		}
	}
	if f.slab != nil && f.slab.begun && !w.coveredLocked(&f.main) {
		kept += f.main.lines
	}
	if f.held != nil && f.held.begun && !w.coveredLocked(&f.front) {
		kept += f.front.lines
	}
	return kept
}

// finish closes the destinations, unless they stay open, and ends Shutdown. run calls
// it last. Shutdown waits for abandoned calls if their destination is to be closed;
// run waits for all of them, to settle them.
func (w *Writer) finish() {
	var errs []error
	ended, left := false, false
	for open := w.io.destinations; ; {
		if !left && !w.io.destinations[0].writing() && !w.io.destinations[1].writing() {
			errs = append(errs, w.leaveFile())
			left = true
			w.dropUnkept()
		}
		for i, o := range open {
			if o != nil && !ended {
				w.repair(o)
			}
			if o != nil && o.stuck == nil {
				errs = append(errs, w.closeDestination(o))
				open[i] = nil
			}
		}
		waits := open != [2]*destination{}
		if !ended && w.closerOf(open[0]) == nil && w.closerOf(open[1]) == nil {
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
	f := &w.flight
	if f.slab != nil && !f.slab.begun { // its lines were dropped by Shutdown
		w.doneLocked(&f.main)
	}
	if f.held != nil && !f.held.begun {
		w.doneLocked(&f.front)
	}
}

// dropUnkept drops the lines that Shutdown left for the next process, if the file has
// been lost since.
func (w *Writer) dropUnkept() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.expired {
		w.dropRestLocked()
	}
}

// conclude ends Shutdown with err, unless its deadline already did.
func (w *Writer) conclude(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.expired {
		w.endLocked(err)
	}
}

// closerOf returns the io.Closer of o, or nil if o is to stay open.
func (w *Writer) closerOf(o *destination) io.Closer {
	if o == nil || w.opts.KeepOpen {
		return nil
	}
	if f, ok := o.w.(*os.File); ok && (f == os.Stdin || f == os.Stdout || f == os.Stderr) {
		return nil
	}
	c, _ := o.w.(io.Closer)
	return c
}

// closeDestination closes o if it is to be closed.
func (w *Writer) closeDestination(o *destination) error {
	c := w.closerOf(o)
	if c == nil {
		return nil
	}
	_ = w.enterMethod(o, "Close")
	defer w.leaveMethod()
	if err := w.callMethod(o, "Close", false, c.Close); err != nil {
		return fmt.Errorf("close the %s: %w", o.name, err)
	}
	return nil
}

// endLocked sets the result of Shutdown: err and the losses before it.
func (w *Writer) endLocked(err error) {
	if err = errors.Join(w.givenUpLocked(0), err); err != nil {
		w.closeErr = later("slab: close: %w", err)
	}
	close(w.finished)
}
