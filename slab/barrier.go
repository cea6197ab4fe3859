package slab

import (
	"bytes"
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
	part   int        // bytes of the last of them that it waits for; -1 is all
	gaveUp uint64     // lines given up before
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

// pass waits until b is passed. It does not seal the open slab, which others
// may still fill; run does when it gets there.
func (w *Writer) pass(ctx context.Context, verb string, b *barrier) error {
	w.mu.Lock()
	if w.stopped {
		w.mu.Unlock()
		return fmt.Errorf("slab: %s: %w", verb, os.ErrClosed)
	}
	f := &w.flight
	b.target, b.part = w.queue.pushed, -1
	if w.filling.cur != nil {
		b.target++
		b.part = w.pos
	} else if !b.sync && w.queue.n == 0 && f.idle() && (w.filling.gap == counts{} || w.opts.NoLossNotice) {
		w.mu.Unlock()
		return nil
	}
	b.gaveUp = w.tally.dropped.of(gaveUp)
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
	pending := w.pendingLocked(b)
	inside := w.insideLocked()
	if pending == 0 && inside != "" {
		return fmt.Errorf("the %s has not returned: %w", inside, ctx.Err())
	}
	if w.tally.lastErr != nil {
		return fmt.Errorf("%s still pending: %w, the destination says: %w", count(pending), ctx.Err(), w.tally.lastErr)
	}
	return fmt.Errorf("%s still pending: %w", count(pending), ctx.Err())
}

// pendingLocked returns how many lines before b are pending.
func (w *Writer) pendingLocked(b *barrier) (n uint64) {
	f := &w.flight
	n = f.front.lines
	// lines returns how many of the total lines in data[from:], of the slab with
	// that number, are before b. Only in the last slab have they to be counted.
	lines := func(number uint64, data []byte, from int, total uint64) uint64 {
		switch {
		case number > b.target:
			return 0
		case number < b.target || b.part < 0:
			return total
		}
		return uint64(bytes.Count(data[min(from, b.part):b.part], newline))
	}
	if f.slab != nil && f.main.lines > 0 { // they were not dropped by Shutdown
		n += lines(f.popped, f.main.data, f.main.whole, f.main.lines)
	}
	for i := range w.queue.n {
		s := w.queue.at(i)
		n += lines(f.popped+1+uint64(i), s.data, 0, uint64(s.lines))
	}
	if w.queue.pushed < b.target {
		n += lines(b.target, w.buf, 0, uint64(w.lines))
	}
	return n
}

// insideLocked names the method of a destination that has not returned, if any.
func (w *Writer) insideLocked() string {
	for _, c := range w.flight.calls {
		if c != nil {
			return c.out.name + "'s Write"
		}
	}
	return w.flight.inside
}

// awaitedLocked reports whether a barrier waits for the open slab.
func (w *Writer) awaitedLocked() bool {
	n := len(w.barriers)
	return n > 0 && w.barriers[n-1].target > w.queue.pushed
}

// reachedLocked reports whether everything before b is done.
func (w *Writer) reachedLocked(b *barrier) bool {
	f := &w.flight
	return f.front.data == nil && (b.target < f.popped || b.target == f.popped && f.slab == nil)
}

// passBarriersLocked answers the barriers at the front that have been reached,
// up to the first Sync, and reports whether there is one. It is called by run.
func (w *Writer) passBarriersLocked() (syncDue bool) {
	for len(w.barriers) > 0 && w.reachedLocked(w.barriers[0]) {
		b := w.barriers[0]
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
	if n := w.tally.dropped.of(gaveUp) - b.gaveUp; n > 0 {
		return fmt.Errorf("gave up %s: %w", count(n), w.tally.lossErr)
	}
	return nil
}

// syncBarriers takes the barriers off the list that have been reached and
// syncs for them what they need, once if it has no use for their contexts.
func (w *Writer) syncBarriers() {
	w.mu.Lock()
	if w.abandoned {
		w.mu.Unlock()
		return
	}
	n := 0
	for n < len(w.barriers) && w.reachedLocked(w.barriers[n]) {
		n++
	}
	reached := slices.Clone(w.barriers[:n])
	lost := make([]error, n)
	for i, b := range reached {
		lost[i] = w.lostSinceLocked(b)
	}
	w.barriers = slices.Delete(w.barriers, 0, n)
	w.mu.Unlock()

	errs := make([]error, n)
	for _, o := range w.io.outlets {
		if o != nil && (o.dirty || o == w.io.used || !o.second && w.io.used == nil) {
			w.syncOutlet(o, reached, errs)
		}
	}
	for i, b := range reached {
		b.done <- errors.Join(lost[i], errs[i])
	}
}

// syncOutlet syncs o for the barriers and adds what it answers to their errs.
func (w *Writer) syncOutlet(o *outlet, barriers []*barrier, errs []error) {
	var once error
	called := false
	for i, b := range barriers {
		if !b.sync {
			continue
		}
		if err := b.ctx.Err(); err != nil { // a nil would say that all is stable
			errs[i] = errors.Join(errs[i], err)
			continue
		}
		var err error
		switch dst := o.w.(type) {
		case interface{ SyncContext(context.Context) error }:
			err = w.callSync(o, "SyncContext", func() error { return dst.SyncContext(b.ctx) })
		case interface{ Sync() error }:
			if !called {
				called, once = true, w.callSync(o, "Sync", dst.Sync)
			}
			err = once
		}
		if err == nil {
			o.dirty = false
		}
		errs[i] = errors.Join(errs[i], err)
	}
}

// callSync calls f, a method of o, unless the Writer has been abandoned.
func (w *Writer) callSync(o *outlet, method string, f func() error) error {
	w.reap()
	if o.stuck != nil {
		return fmt.Errorf("sync the %s: %w", o.name, errStalled)
	}
	if err := w.goInside(o.name + "'s " + method); err != nil {
		return err
	}
	defer w.setInside("")
	return w.apart(o, method, true, func() error {
		if err := f(); !unsyncable(err) {
			return err
		}
		return nil
	})
}

// goInside is setInside, unless the Writer has been abandoned: then no method may
// be called but Close, and the error is Shutdown's.
func (w *Writer) goInside(what string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.abandoned {
		return w.closeErr
	}
	w.flight.inside = what
	return nil
}

func (w *Writer) setInside(what string) {
	w.mu.Lock()
	w.flight.inside = what
	w.mu.Unlock()
}

// unsyncable reports whether err is a system's answer to a sync of what cannot
// be synced: EINVAL on a pipe or a socket, ENOTTY on a darwin terminal.
func unsyncable(err error) bool {
	return errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTTY) ||
		errors.Is(err, errors.ErrUnsupported) || errors.Is(err, errNoSyncHandle)
}
