package shard

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
	ctx    context.Context
	sync   bool
	target uint64     // passed when so many terms have been dealt with
	gaveUp uint64     // tally.gaveUp at the start
	done   chan error // holds the result
}

// Flush waits until every record accepted before the call has been written to
// the destination. Its error wraps ctx.Err() and says how many records are
// still pending if ctx ends first, says how many were lost if the destination
// was given up, and wraps os.ErrClosed once the Writer is closed.
func (w *Writer) Flush(ctx context.Context) error {
	return w.pass(ctx, "flush", &barrier{ctx: ctx, done: make(chan error, 1)})
}

// SyncContext is Flush followed by the destination's SyncContext(ctx), or its
// Sync() if it has only that. A destination with neither, or one that answers
// that it cannot be synced, is not an error.
func (w *Writer) SyncContext(ctx context.Context) error {
	return w.pass(ctx, "sync", &barrier{ctx: ctx, sync: true, done: make(chan error, 1)})
}

// Sync is SyncContext bounded by Options.CloseTimeout.
func (w *Writer) Sync() error {
	ctx, cancel := context.WithTimeout(context.Background(), w.opts.CloseTimeout)
	defer cancel()
	return w.SyncContext(ctx)
}

// pass sends everything off and waits until b is passed.
func (w *Writer) pass(ctx context.Context, verb string, b *barrier) error {
	w.sendOffAll()
	w.mu.Lock()
	if w.stopped {
		w.mu.Unlock()
		return fmt.Errorf("shard: %s: %w", verb, os.ErrClosed)
	}
	b.target, b.gaveUp = w.pushed, w.tally.gaveUp
	w.barrier = append(w.barrier, b)
	w.mu.Unlock()
	w.wakeUp()

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
		return fmt.Errorf("shard: %s: %w", verb, err)
	}
	return nil
}

// leaveBehind takes b off the list because ctx has ended and returns the error
// for it.
func (w *Writer) leaveBehind(ctx context.Context, b *barrier) error {
	pending := w.Stats().Pending
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case err := <-b.done:
		return err
	default:
	}
	w.barrier = slices.DeleteFunc(w.barrier, func(o *barrier) bool { return o == b })
	err := fmt.Errorf("%s still pending: %w", count(pending), ctx.Err())
	if w.tally.lastErr != nil {
		err = fmt.Errorf("%w, the destination says: %w", err, w.tally.lastErr)
	}
	return err
}

// passBarriersLocked answers the barriers at the front that have been reached,
// up to the first Sync, and reports whether there is one. It is called by run.
func (w *Writer) passBarriersLocked() (syncDue bool) {
	for len(w.barrier) > 0 {
		b := w.barrier[0]
		if b.target > w.flushed {
			break
		}
		if b.sync {
			return true
		}
		w.barrier = slices.Delete(w.barrier, 0, 1)
		b.done <- w.lostSinceLocked(b)
	}
	return false
}

// lostSinceLocked is the result of b as far as its records go.
func (w *Writer) lostSinceLocked(b *barrier) error {
	if n := w.tally.gaveUp - b.gaveUp; n > 0 {
		return fmt.Errorf("gave up %s: %w", count(n), w.tally.lossErr)
	}
	return nil
}

// syncBarriers syncs the destination for the barriers that have been reached,
// once for all of them.
func (w *Writer) syncBarriers() {
	if !w.enter("sync") {
		return
	}
	w.mu.Lock()
	n := 0
	for n < len(w.barrier) && w.barrier[n].target <= w.flushed {
		n++
	}
	reached := slices.Clone(w.barrier[:n])
	w.barrier = slices.Delete(w.barrier, 0, n)
	w.mu.Unlock()

	settle := func(ctx context.Context, err error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.exitLocked()
		var again []*barrier
		for _, b := range reached {
			switch lost := w.lostSinceLocked(b); {
			case !b.sync:
				b.done <- lost
			case err != nil && errors.Is(err, ctx.Err()) && b.ctx.Err() == nil:
				again = append(again, b) // it was another's time that ran out
			default:
				b.done <- errors.Join(lost, err)
			}
		}
		w.barrier = append(again, w.barrier...)
	}
	if ctx := patient(reached); ctx != nil {
		w.syncDestination(ctx, settle)
	} else { // who wanted a Sync has left just now
		settle(context.Background(), nil)
	}
}

// patient returns the context of the first Sync of the barriers that still waits,
// or of the last; nil: none of them is a Sync.
func patient(reached []*barrier) (ctx context.Context) {
	for _, b := range reached {
		if b.sync {
			if ctx = b.ctx; ctx.Err() == nil {
				break
			}
		}
	}
	return ctx
}

// syncDestination calls done with the result, even if the destination ends the
// goroutine.
func (w *Writer) syncDestination(ctx context.Context, done func(context.Context, error)) {
	method, f := "", func() error { return nil }
	switch dst := w.dst.(type) {
	case interface{ SyncContext(context.Context) error }:
		method, f = "SyncContext", func() error { return dst.SyncContext(ctx) }
	case interface{ Sync() error }:
		method, f = "Sync", dst.Sync
	}
	guard(method, f, func(err error) {
		if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTTY) || errors.Is(err, errors.ErrUnsupported) {
			err = nil // a terminal, a pipe
		}
		done(ctx, err)
	})
}

// guard calls a method of the destination, and then done with its error, which
// also stands for a panic. If the method ends the goroutine, so does guard, but
// done is called.
func guard(method string, f func() error, done func(error)) {
	var err error
	returned := false
	defer func() {
		if v := recover(); v != nil {
			err = panicked(method, v)
		} else if !returned {
			err = fmt.Errorf("shard: destination ended its goroutine in %s", method)
		}
		done(err)
	}()
	err = f()
	returned = true
}
