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
// of the destination are dropped and counted as Drops.Shutdown. Those inside
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
		w.giveUp(ctx)
	}
	return w.closeErr
}

// giveUp ends the drain, unless it has ended by itself.
func (w *Writer) giveUp(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.finished:
		return
	default:
	}
	w.abandoned = true
	close(w.abandon)

	var lost uint64
	for w.queue.n > 0 {
		s := w.queue.pop()
		lost += w.countLocked(s)
		s.data = nil
		w.filling.free = append(w.filling.free, s)
	}
	if s := w.flight.slab; s != nil {
		w.countLocked(s)
	}
	if w.flight.inside == "" {
		lost += w.flight.left
		w.flight.left = 0
	}
	w.tally.dropped.Shutdown += lost

	err := ctx.Err()
	switch {
	case lost > 0 || w.flight.left > 0:
		err = fmt.Errorf("%s dropped, %d inside a write that has not returned: %w", count(lost), w.flight.left, err)
	case w.flight.inside != "":
		err = fmt.Errorf("the destination's %s has not returned: %w", w.flight.inside, err)
	}
	if w.tally.lastErr != nil {
		err = fmt.Errorf("%w, the destination says: %w", err, w.tally.lastErr)
	}
	w.endLocked(err)
}

// finish closes the destination if asked to and ends Shutdown. It is the last
// thing run does.
func (w *Writer) finish() {
	var err error
	if c, ok := w.dst.(io.Closer); ok && w.opts.CloseDestination {
		w.mu.Lock()
		w.flight.inside = "Close"
		w.mu.Unlock()
		if err = guard("Close", c.Close); err != nil {
			err = fmt.Errorf("close the destination: %w", err)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flight.inside = ""
	if !w.abandoned {
		w.endLocked(err)
	}
}

// endLocked sets the result of Shutdown: err and what was given up before.
func (w *Writer) endLocked(err error) {
	if n := w.tally.dropped.GaveUp; n > 0 {
		err = errors.Join(fmt.Errorf("gave up %s: %w", count(n), w.tally.lossErr), err)
	}
	if err != nil {
		w.closeErr = fmt.Errorf("slab: close: %w", err)
	}
	close(w.finished)
}
