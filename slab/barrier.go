package slab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
)

// barrier is a Flush or a Sync under way.
type barrier struct {
	ctx    context.Context // of a Sync, for the destination's SyncContext
	sync   bool
	target uint64     // passed when so many slabs have been delivered
	gaveUp uint64     // tally.dropped.GaveUp at the start
	done   chan error // holds the result
}

// Flush waits until every line accepted before the call has been written to
// the destination. Its error wraps ctx.Err() and says how many lines are still
// pending if ctx ends first, says how many of them were lost if the destination
// was given up, and wraps os.ErrClosed once the Writer is closed.
func (w *Writer) Flush(ctx context.Context) error {
	return w.pass(ctx, "flush", &barrier{done: make(chan error, 1)})
}

// SyncContext is Flush followed by the destination's SyncContext(ctx), or its
// Sync() if it has only that. A destination with neither, or one that answers
// that it cannot be synced, as terminals and pipes do, is not an error.
func (w *Writer) SyncContext(ctx context.Context) error {
	return w.pass(ctx, "sync", &barrier{ctx: ctx, sync: true, done: make(chan error, 1)})
}

// Sync is SyncContext bounded by Options.CloseTimeout.
func (w *Writer) Sync() error {
	ctx, cancel := context.WithTimeout(context.Background(), w.opts.CloseTimeout)
	defer cancel()
	return w.SyncContext(ctx)
}

// pass seals the current slab and waits until b is passed.
func (w *Writer) pass(ctx context.Context, verb string, b *barrier) error {
	w.mu.Lock()
	if w.stopped {
		w.mu.Unlock()
		return fmt.Errorf("slab: %s: %w", verb, os.ErrClosed)
	}
	w.sealLocked()
	f := &w.flight
	if !b.sync && w.queue.n == 0 && f.slab == nil && f.left == 0 && f.inside == "" && (w.filling.gap == Drops{} || w.opts.NoLossNotice) {
		w.mu.Unlock()
		return nil
	}
	b.target = w.queue.pushed
	b.gaveUp = w.tally.dropped.GaveUp
	w.barriers = append(w.barriers, b)
	wake := w.parked
	w.parked, w.dozing = false, false
	w.mu.Unlock()
	if wake {
		w.wakeUp()
	}

	var err error
	select {
	case err = <-b.done:
	case <-w.finished:
		select {
		case err = <-b.done:
		default:
			err = w.closeErr
		}
	case <-ctx.Done():
		err = w.leaveBehind(ctx, b)
	}
	if err != nil {
		return fmt.Errorf("slab: %s: %w", verb, err)
	}
	return nil
}

// leaveBehind takes b off the list because ctx has ended and returns the error
// for it.
func (w *Writer) leaveBehind(ctx context.Context, b *barrier) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case err := <-b.done:
		return err
	default:
	}
	w.barriers = slices.DeleteFunc(w.barriers, func(o *barrier) bool { return o == b })
	pending := w.flight.left
	if s := w.flight.slab; s != nil {
		w.countLocked(s)
		pending = w.flight.left
	}
	for i := range w.queue.n {
		if w.flight.popped+uint64(i) < b.target {
			pending += w.countLocked(w.queue.at(i))
		}
	}
	if pending == 0 && w.flight.inside != "" {
		return fmt.Errorf("the destination's %s has not returned: %w", w.flight.inside, ctx.Err())
	}
	if w.tally.lastErr != nil {
		return fmt.Errorf("%s still pending: %w, the destination says: %w", count(pending), ctx.Err(), w.tally.lastErr)
	}
	return fmt.Errorf("%s still pending: %w", count(pending), ctx.Err())
}

// passBarriersLocked answers the barriers at the front that have been reached,
// up to the first Sync, and reports whether there is one. It is called by run.
func (w *Writer) passBarriersLocked() (syncDue bool) {
	for len(w.barriers) > 0 && len(w.io.carry) == 0 {
		b := w.barriers[0]
		if b.target > w.flight.popped {
			break
		}
		if b.sync {
			return true
		}
		w.barriers = slices.Delete(w.barriers, 0, 1)
		b.done <- w.lostSinceLocked(b)
	}
	return false
}

// lostSinceLocked is the result of b as far as its lines go.
func (w *Writer) lostSinceLocked(b *barrier) error {
	if n := w.tally.dropped.GaveUp - b.gaveUp; n > 0 {
		return fmt.Errorf("gave up %s: %w", count(n), w.tally.lossErr)
	}
	return nil
}

// syncBarriers takes the barriers off the list that have been reached and
// syncs the destination for them, once if it has no use for their contexts.
func (w *Writer) syncBarriers() {
	if !w.enter("Sync", false) {
		return
	}
	w.mu.Lock()
	n := 0
	for n < len(w.barriers) && w.barriers[n].target <= w.flight.popped {
		n++
	}
	reached := slices.Clone(w.barriers[:n])
	lost := make([]error, n)
	for i, b := range reached {
		lost[i] = w.lostSinceLocked(b)
	}
	w.barriers = slices.Delete(w.barriers, 0, n)
	w.mu.Unlock()

	var once error
	called := false
	for i, b := range reached {
		err := error(nil)
		switch dst := w.dst.(type) {
		case interface{ SyncContext(context.Context) error }:
			if b.sync && b.ctx.Err() == nil {
				err = guard("SyncContext", func() error { return dst.SyncContext(b.ctx) })
			}
		case interface{ Sync() error }:
			if b.sync && !called {
				called, once = true, guard("Sync", dst.Sync)
			}
			if b.sync {
				err = once
			}
		}
		if unsyncable(err) {
			err = nil
		}
		b.done <- errors.Join(lost[i], err)
	}

	w.mu.Lock()
	w.flight.inside = ""
	w.mu.Unlock()
}

// guard calls a method of the destination and turns a panic into an error.
func guard(method string, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = panicked(method, v)
		}
	}()
	return f()
}

// unsyncable reports whether err is a system's answer to a sync of what cannot
// be synced: EINVAL on a pipe or a socket, ENOTTY on a darwin terminal.
func unsyncable(err error) bool {
	return errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTTY) ||
		errors.Is(err, errors.ErrUnsupported) || errors.Is(err, errNoSyncHandle)
}
