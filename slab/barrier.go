package slab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/rollway/rollway/line"
)

// barrier is an active Flush or Sync.
type barrier struct {
	sync   bool
	target uint64     // passed when this many slabs have been delivered
	more   bool       // and the slabs that are being filled when run gets there
	lost   uint64     // lines given up before the call
	done   chan error // holds the result
}

// Flush waits until every line accepted before the call has been written to
// the destination. If ctx ends first its error wraps line.ErrPending and
// ctx.Err(). If some of the lines were given up it wraps line.ErrLost, and once
// the Writer is closed os.ErrClosed.
func (w *Writer) Flush(ctx context.Context) error {
	return w.awaitBarrier(ctx, "flush", &barrier{done: make(chan error, 1)})
}

// Sync is Flush followed by the destination's Sync, within Options.CloseTimeout.
// It is not an error if the destination has no method Sync() error, or cannot be synced,
// as terminals and pipes cannot.
func (w *Writer) Sync() error {
	ctx, cancel := context.WithTimeout(context.Background(), w.opts.CloseTimeout)
	defer cancel()
	return w.awaitBarrier(ctx, "sync", &barrier{sync: true, done: make(chan error, 1)})
}

// awaitBarrier waits until b is passed. It does not seal open slabs, which may still be
// filled; run does when it gets there.
func (w *Writer) awaitBarrier(ctx context.Context, verb string, b *barrier) error {
	w.mu.Lock()
	if w.stopped {
		w.mu.Unlock()
		return fmt.Errorf("slab: %s: %w", verb, os.ErrClosed)
	}
	f := &w.flight
	b.target, b.more = w.queue.pushed, w.unsealedLocked()
	if !b.more && !b.sync && w.queue.n == 0 && f.idle() && (w.filling.gap == counts{} && f.owed == counts{} || w.opts.NoNotice) {
		w.mu.Unlock()
		return nil
	}
	b.lost = w.tally.dropped.by[gaveUp]
	w.barriers = append(w.barriers, b)
	w.wakeParkedUnlock()

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
		err = w.cancelBarrier(ctx, b)
	}
	if err != nil {
		return fmt.Errorf("slab: %s: %w", verb, err)
	}
	return nil
}

// cancelBarrier removes b because ctx has ended and returns the error for it.
func (w *Writer) cancelBarrier(ctx context.Context, b *barrier) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case err := <-b.done:
		return err
	default:
	}
	w.barriers = slices.DeleteFunc(w.barriers, func(o *barrier) bool { return o == b })
	filling, _ := w.fillingLocked()
	pending := w.pendingLocked(filling)
	if in, active := w.activeLocked(); pending == 0 && active {
		return fmt.Errorf("the %s %w: %w", in, errStalled, ctx.Err())
	} else if pending == 0 { // the call has just returned
		return ctx.Err()
	}
	return because(fmt.Errorf("%w: %d: %w", line.ErrPending, pending, ctx.Err()), w.failureLocked())
}

// because adds to err why the destination fails, if it does.
func because(err, cause error) error {
	if cause == nil {
		return err
	}
	return later("%w; cause: %w", err, cause)
}

// later is fmt.Errorf for use under mu. It formats the errors in args only when its own
// text is needed: those may be the destination's, and call the Writer.
func later(format string, args ...any) error { return &worded{format, args} }

type worded struct {
	format string
	args   []any
}

func (e *worded) Error() string { return fmt.Errorf(e.format, e.args...).Error() }

func (e *worded) Unwrap() (errs []error) {
	for _, a := range e.args {
		if err, ok := a.(error); ok {
			errs = append(errs, err)
		}
	}
	return errs
}

// pendingLocked returns how many lines are pending. filling is how many are in slabs
// that are not settled.
func (w *Writer) pendingLocked(filling uint64) (n uint64) {
	n = filling + w.flight.main.lines + w.flight.front.lines
	for i := range w.queue.n {
		n += uint64(w.queue.at(i).lines)
	}
	return n
}

// activeCall is a call of a destination's method that has not returned.
type activeCall struct {
	out    *destination
	method string
	began  time.Duration
}

func (in activeCall) String() string { return in.out.name + "'s " + in.method }

// activeLocked returns a call of a destination that has not returned, if there is one.
// A call of the destination in use comes first.
func (w *Writer) activeLocked() (in activeCall, ok bool) {
	if in = w.flight.active; in.out != nil {
		return in, true
	}
	for _, c := range w.flight.calls {
		if c != nil && (in.out == nil || c.out == w.io.used) {
			in = activeCall{c.out, "Write", c.began}
		}
	}
	return in, in.out != nil
}

// failureLocked returns why the destination in use fails, or nil: its latest
// Write has failed, or a call has lasted for too long.
func (w *Writer) failureLocked() error {
	if in, ok := w.activeLocked(); ok && in.out == w.io.used {
		if _, err := w.stalledLocked(in); err != nil {
			return err
		}
	}
	return w.tally.failing
}

// stalledLocked returns an error if in, which has not returned, lasts too long, and
// otherwise how much longer it may take.
func (w *Writer) stalledLocked(in activeCall) (left time.Duration, err error) {
	limit := w.opts.CloseTimeout // of a Sync or Close, whose caller waits for it
	if in.method == "Write" {
		mean := w.tally.WriteTime / time.Duration(max(w.tally.Writes, 1))
		limit = max(w.opts.MaxWait, min(4*mean, limit)) // a distant peer is slow but healthy
	}
	lasts := w.age() - in.began
	if lasts >= limit {
		err = stalled(in.out, in.method, lasts)
	}
	return limit - lasts, err
}

// reachedLocked reports whether everything before b is done.
func (w *Writer) reachedLocked(b *barrier) bool {
	f := &w.flight
	return f.front.size() == 0 && (b.target < f.popped || b.target == f.popped && f.slab == nil)
}

// passBarriersLocked answers the barriers that have been reached, up to the first Sync,
// and reports whether there is one. Only run calls it.
func (w *Writer) passBarriersLocked() (syncDue bool) {
	for len(w.barriers) > 0 && w.reachedLocked(w.barriers[0]) {
		b := w.barriers[0]
		if b.more {
			w.sealAllLocked()
			for _, b := range w.barriers {
				if b.more {
					b.target, b.more = w.queue.pushed, false
				}
			}
			continue
		}
		if b.sync {
			return true
		}
		w.barriers = slices.Delete(w.barriers, 0, 1)
		b.done <- w.givenUpLocked(b.lost)
	}
	return false
}

// givenUpLocked returns an error if more lines were given up than since.
func (w *Writer) givenUpLocked(since uint64) error {
	if n := w.tally.dropped.by[gaveUp] - since; n > 0 {
		return later("%w: %d, given up: %w", line.ErrLost, n, w.tally.lossErr)
	}
	return nil
}

// syncBarriers removes the barriers that have been reached and syncs the destinations
// once for all of them.
func (w *Writer) syncBarriers() {
	w.mu.Lock()
	if w.expired {
		w.mu.Unlock()
		return
	}
	n := 0
	for n < len(w.barriers) && !w.barriers[n].more && w.reachedLocked(w.barriers[n]) {
		n++
	}
	reached := slices.Clone(w.barriers[:n])
	lost := make([]error, n)
	for i, b := range reached {
		lost[i] = w.givenUpLocked(b.lost)
	}
	w.barriers = slices.Delete(w.barriers, 0, n)
	w.mu.Unlock()

	var err error
	for _, o := range w.io.destinations {
		if o != nil && (o.dirty || o == w.io.used || !o.second() && w.io.used == nil) {
			err = errors.Join(err, w.syncDestination(o))
		}
	}
	for i, b := range reached {
		if b.sync {
			lost[i] = errors.Join(lost[i], err)
		}
		b.done <- lost[i]
	}
}

// syncDestination syncs o, if it can be.
func (w *Writer) syncDestination(o *destination) error {
	dst, ok := o.w.(interface{ Sync() error })
	if !ok {
		return nil
	}
	w.reap()
	if o.stuck != nil {
		return fmt.Errorf("sync the %s: an earlier call %w", o.name, errStalled)
	}
	if err := w.enterMethod(o, "Sync"); err != nil {
		return err
	}
	defer w.leaveMethod()
	err := w.callMethod(o, "Sync", true, func() error {
		if err := dst.Sync(); !unsyncable(err) {
			return err
		}
		return nil
	})
	if err == nil {
		o.dirty = false
	}
	return err
}

// enterMethod records that a method of o begins. After the deadline of Shutdown only
// Close may be called; for other methods it returns Shutdown's error.
func (w *Writer) enterMethod(o *destination, method string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.expired && method != "Close" {
		return w.closeErr
	}
	w.flight.active = activeCall{o, method, w.age()}
	w.watchLocked()
	return nil
}

func (w *Writer) leaveMethod() {
	w.mu.Lock()
	w.flight.active = activeCall{}
	w.mu.Unlock()
}

// unsyncable reports whether err says that the destination cannot be synced: EINVAL
// for a pipe or a socket, ENOTTY for a terminal on darwin, ERROR_INVALID_HANDLE for a
// console of Windows.
func unsyncable(err error) bool {
	return errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTTY) || errors.Is(err, errors.ErrUnsupported) ||
		runtime.GOOS == "windows" && errors.Is(err, syscall.Errno(6))
}
