package shard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// Close is Shutdown bounded by Options.CloseTimeout.
func (w *Writer) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), w.opts.CloseTimeout)
	defer cancel()
	return w.Shutdown(ctx)
}

// Shutdown takes no more records, releases the writers that wait with
// os.ErrClosed, and waits until everything accepted has been written and, with
// Options.CloseDestination, the destination closed.
//
// If ctx ends first nothing is tried again: records that are not inside a call
// of the destination are dropped and counted as Drops.Shutdown. Those inside
// one stay pending until it returns.
//
// The error says what was lost and why. All calls of Shutdown and Close return
// the same one, and the earliest of their deadlines counts.
func (w *Writer) Shutdown(ctx context.Context) error {
	w.mu.Lock()
	first := !w.closed
	w.closed = true
	w.waiters = nil // they see closing
	w.mu.Unlock()
	if first {
		for i := range w.shards {
			w.closeShard(&w.shards[i])
		}
		close(w.closing)
		w.wakeUp()
	}
	<-w.closing // or another call's deadline could pass before every shard is closed
	select {
	case <-w.finished:
	case <-ctx.Done():
		w.giveUpAll(ctx)
	}
	return w.closeErr
}

// closeShard queues the shard's term and leaves it without one.
func (w *Writer) closeShard(s *shard) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.cur.Load()
	if t != w.full {
		t.seal()
		w.rotateLocked(s, t)
	}
	s.cur.Store(nil)
}

// giveUpAll ends the drain, unless it has ended by itself.
func (w *Writer) giveUpAll(ctx context.Context) {
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
	for _, t := range w.queue {
		t.data() // a record still being copied is accepted as well
		left := t.records() - t.counted
		lost += left
		w.tally.shards[t.owner.Load()].shutdown += left
		w.releaseLocked(t)
	}
	w.queue = w.queue[:0]
	w.tally.shutdown += lost
	inside := w.tally.inside
	var held uint64
	if inside == "" || !w.lent {
		lost += w.dropBatchLocked()
	} else {
		for _, t := range w.io.batch {
			t.data()
			held += t.records() - t.counted
		}
	}
	err := ctx.Err()
	switch {
	case lost > 0 || held > 0:
		err = fmt.Errorf("%s dropped, %d inside a write that has not returned: %w", count(lost), held, err)
	case inside != "":
		err = fmt.Errorf("the destination's %s has not returned: %w", inside, err)
	}
	if w.tally.lastErr != nil {
		err = fmt.Errorf("%w, the destination says: %w", err, w.tally.lastErr)
	}
	w.endLocked(err)
}

// finish closes the destination if asked to and ends Shutdown. It is the last
// thing run does.
func (w *Writer) finish() {
	end := func(err error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.exitLocked()
		for _, r := range w.reopens {
			r.done <- os.ErrClosed
		}
		w.reopens = nil
		if freeErr := w.unmapTerms(); err == nil {
			err = freeErr
		}
		if !w.abandoned {
			w.endLocked(err)
		}
	}
	c, ok := w.dst.(io.Closer)
	if !ok || !w.opts.CloseDestination {
		end(nil)
		return
	}
	w.mu.Lock()
	w.enterLocked("Close")
	w.mu.Unlock()
	guard("Close", c.Close, func(err error) {
		if err != nil {
			err = fmt.Errorf("close the destination: %w", err)
		}
		end(err)
	})
}

// endLocked sets the result of Shutdown: err and what was given up before.
func (w *Writer) endLocked(err error) {
	if n := w.tally.gaveUp; n > 0 {
		err = errors.Join(fmt.Errorf("gave up %s: %w", count(n), w.tally.lossErr), err)
	}
	if err != nil {
		w.closeErr = fmt.Errorf("shard: close: %w", err)
	}
	close(w.finished)
}
