package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// enter counts a call in, with its lines, unless the File is closing.
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

// leave counts a call out; returned of its lines go back to the caller.
func (f *File) leave(lines, returned uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stats.Pending -= lines
	f.stats.Returned += returned
	if f.running--; f.closing && f.running == 0 {
		close(f.idle)
	}
}

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

// call runs do with the turn, which lock waits for.
func (f *File) call(name string, lock func(context.Context) error, do func() error) error {
	if !f.enter(0) {
		return f.fail(name, os.ErrClosed)
	}
	defer f.leave(0, 0)
	err := lock(context.Background())
	if err == nil {
		err = do()
		f.unlock()
	}
	return f.failed(name, err)
}

// failed counts and names the error of a call; errors.ErrUnsupported of Prepare does not count.
func (f *File) failed(call string, err error) error {
	if err != nil && err != errors.ErrUnsupported {
		err = f.fail(call, err)
		f.countError(err)
	}
	return err
}

// Flush waits until earlier Writes have returned. Their lines need no Flush.
func (f *File) Flush(ctx context.Context) error {
	return f.barrier(ctx, "flush", func() error { return nil })
}

// Sync calls fsync, so that what was written survives a crash of the machine. For pipes,
// terminals and devices it is Flush. It returns after Options.CloseTimeout at the latest;
// then the fsync continues in the background, and Writes wait for it.
func (f *File) Sync() error {
	ctx, cancel := context.WithTimeout(context.Background(), f.opt.CloseTimeout)
	defer cancel()
	return f.barrier(ctx, "sync", f.sync)
}

// barrier takes the turn and calls do, which may hang on a bad disk: ctx ends only the
// wait. After Close it returns the result of Close.
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
		err = f.failed(call, err)
		f.leave(0, 0)
		result <- err
	}()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return f.fail(call, ctx.Err())
	}
}

func (f *File) wait(ctx context.Context) error {
	select {
	case <-f.done:
	case <-ctx.Done():
		select {
		case <-f.done:
		default:
			return f.fail("close", ctx.Err())
		}
	}
	return f.err
}

// Close is Shutdown with Options.CloseTimeout.
func (f *File) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), f.opt.CloseTimeout)
	defer cancel()
	return f.Shutdown(ctx)
}

// Shutdown refuses new calls, waits for active ones and closes the file, without fsync
// unless Options.Sync asks for it. When ctx ends first, waiting calls and those that hang
// in a pipe return; the callers still own their lines. A write that hangs on a disk cannot
// be canceled: Shutdown returns an error with the number of its lines, which stay pending,
// and the file is closed when it returns. Later calls return the same result.
func (f *File) Shutdown(ctx context.Context) error {
	f.mu.Lock()
	first := !f.closing
	f.closing = true
	if first && f.running == 0 {
		close(f.idle)
	}
	f.mu.Unlock()
	if !first {
		return f.wait(ctx)
	}
	finished := make(chan error, 1)
	go func() {
		<-f.idle
		finished <- f.finish()
		f.maintenance.syncOwed(false) // what the last calls left, if Shutdown has not waited for them
		close(f.shut)
	}()
	var err error
	select {
	case err = <-finished:
	case <-ctx.Done():
		err = f.abandon(ctx, finished)
	}
	f.err = f.failed("close", errors.Join(err, f.maintenance.close(ctx)))
	close(f.done)
	f.teller.End()
	return f.err
}

// stopTimeout bounds the wait of Shutdown for calls that it has told to end.
const stopTimeout = 100 * time.Millisecond

// abandon ends the calls that can be ended and waits briefly for the file to be closed,
// which otherwise happens when the last call returns.
func (f *File) abandon(ctx context.Context, finished <-chan error) (err error) {
	f.mu.Lock()
	pending, running := f.stats.Pending, f.running
	f.io.f.SetWriteDeadline(time.Unix(1, 0)) // only pipes and the like have one
	f.mu.Unlock()
	close(f.quit)
	select {
	case err = <-finished:
	case <-time.After(stopTimeout):
		err = fmt.Errorf("the disk does not answer: %w", ctx.Err())
	}
	if running > 0 {
		err = errors.Join(fmt.Errorf("%d lines were on the way: %w", pending, ctx.Err()), err)
	}
	return err
}

func (f *File) finish() error {
	sync := f.io.fsyncs.failure
	if f.opt.Sync == SyncInterval {
		sync = f.sync
	}
	return errors.Join(f.repairTail(), sync(), f.io.close())
}
