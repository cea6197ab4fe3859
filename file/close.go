package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// enter counts a call in, with the lines it brings, unless the File is closing.
func (f *File) enter(lines uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closing {
		f.stats.Rejected += lines
		return false
	}
	f.running++
	f.stats.Pending += lines
	return true
}

// leave counts a call out; of its lines, returned ones go back to the caller.
func (f *File) leave(lines, returned uint64) {
	f.mu.Lock()
	f.stats.Pending -= lines
	f.stats.Returned += returned
	f.running--
	last, abandoned := f.closing && f.running == 0, f.abandoned
	f.mu.Unlock()
	if last && abandoned {
		f.finish() // its error has nobody left to go to
		f.keeper.syncBehind(true)
	}
	if last {
		close(f.idle)
	}
}

// lock waits for the turn to use the file.
func (f *File) lock(ctx context.Context) error {
	select {
	case f.turn <- struct{}{}:
		return nil
	default:
	}
	select {
	case f.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the call before this one: %w", ctx.Err())
	case <-f.quit:
		return os.ErrClosed
	}
}

func (f *File) unlock() { <-f.turn }

// Flush waits until the Writes begun before it have ended. A Write that has
// returned needs no Flush.
func (f *File) Flush(ctx context.Context) error {
	return f.barrier(ctx, "flush", func() error { return nil })
}

// Sync is SyncContext with Options.CloseTimeout.
func (f *File) Sync() error {
	ctx, cancel := context.WithTimeout(context.Background(), f.opt.CloseTimeout)
	defer cancel()
	return f.SyncContext(ctx)
}

// SyncContext calls fsync, so that what was written survives a crash of the
// machine. Pipes, terminals and devices have no fsync: there it is Flush. When
// ctx ends first the fsync goes on by itself, and Writes wait for it.
func (f *File) SyncContext(ctx context.Context) error {
	return f.barrier(ctx, "sync", f.sync)
}

// barrier takes the turn and calls do, which may hang on a bad disk: ctx ends
// the wait for it, not do. After Close it returns what Close returned.
func (f *File) barrier(ctx context.Context, call string, do func() error) error {
	if !f.enter(0) {
		return f.wait(ctx)
	}
	if err := f.lock(ctx); err != nil {
		f.leave(0, 0)
		return f.fail(call, err)
	}
	result := make(chan error, 1)
	go func() {
		err := do()
		f.unlock()
		if err != nil {
			f.countError(err)
		}
		f.leave(0, 0)
		result <- err
	}()
	select {
	case err := <-result:
		if err != nil {
			return f.fail(call, err)
		}
		return nil
	case <-ctx.Done():
		return f.fail(call, ctx.Err())
	}
}

// wait waits for the Shutdown under way and returns its result.
func (f *File) wait(ctx context.Context) error {
	select {
	case <-f.done:
		return f.err
	default:
	}
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return f.fail("close", ctx.Err())
	}
}

// Close is Shutdown with Options.CloseTimeout.
func (f *File) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), f.opt.CloseTimeout)
	defer cancel()
	return f.Shutdown(ctx)
}

// Shutdown refuses new calls, waits for the running ones and closes the file,
// without fsync unless Options.Sync asks for it. When ctx ends first it frees
// the calls that wait, whose callers get their lines back with os.ErrClosed,
// and those that hang in a pipe; a write that hangs in a disk cannot be ended:
// its lines stay pending, it closes the file when it comes back, and Shutdown
// returns an error with their number. Later calls return what the first
// returned.
func (f *File) Shutdown(ctx context.Context) error {
	f.mu.Lock()
	first := !f.closing
	f.closing = true
	running := f.running
	f.mu.Unlock()
	if !first {
		return f.wait(ctx)
	}
	close(f.shut)
	if running == 0 {
		close(f.idle)
	}
	select {
	case <-f.idle:
		f.err = f.finishWithin(ctx)
	case <-ctx.Done():
		f.err = f.abandon(ctx)
	}
	f.err = errors.Join(f.err, f.keeper.close(ctx))
	f.endWatch(ctx)
	if f.err != nil {
		f.err = f.fail("close", f.err)
		f.countError(f.err)
	}
	close(f.done)
	return f.err
}

// patience is how long Shutdown waits for calls that it has told to end.
const patience = 100 * time.Millisecond

// abandon ends what can be ended and leaves the rest behind; the last call
// that comes back closes the file.
func (f *File) abandon(ctx context.Context) error {
	f.mu.Lock()
	pending, running := f.stats.Pending, f.running
	f.abandoned = running > 0
	f.current.SetWriteDeadline(time.Unix(1, 0)) // only pipes and the like have one
	f.mu.Unlock()
	close(f.quit)
	if running == 0 { // the last one came back as ctx ended
		return f.finishWithin(ctx)
	}
	select {
	case <-f.idle:
	case <-time.After(patience):
	}
	return fmt.Errorf("%d lines were on the way: %w", pending, ctx.Err())
}

// finishWithin is finish until ctx ends, and then no longer than patience: a bad
// disk may hang in it.
func (f *File) finishWithin(ctx context.Context) error {
	result := make(chan error, 1)
	go func() { result <- f.finish() }()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
	}
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case err := <-result:
		return err
	case <-t.C:
		return fmt.Errorf("the disk does not answer: %w", ctx.Err())
	}
}

// finish closes the file. Nothing runs any more.
func (f *File) finish() error {
	err := f.mend()
	if f.opt.Sync == Interval {
		err = errors.Join(err, f.sync())
	} else {
		err = errors.Join(err, f.io.syncErr)
	}
	return errors.Join(err, f.io.close())
}

// watch counts a goroutine of ReopenOn in, unless the File is closing.
func (f *File) watch() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closing {
		f.watchers.Add(1)
	}
	return !f.closing
}

// endWatch waits for the goroutines of ReopenOn, which Shutdown has told to end.
func (f *File) endWatch(ctx context.Context) {
	ended := make(chan struct{})
	go func() {
		f.watchers.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}
