package remote

import (
	"context"
	"errors"
	"fmt"
)

// Flush waits until the Writes begun before it have ended. With Options.Spill it also
// waits until the lines on disk are settled. If ctx ends first, its error says how many
// are still there and wraps line.ErrPending.
func (w *Writer) Flush(ctx context.Context) error {
	if err := w.settleAll(ctx, true); err != nil {
		return w.wrap(err)
	}
	w.tell(false)
	return nil
}

// settleAll waits as Flush does. Unless patient is set, it does not wait for lines on
// disk while the peer fails, and calls fsync for those it leaves there.
func (w *Writer) settleAll(ctx context.Context, patient bool) error {
	if w.spill != nil {
		return w.spill.drain(ctx, patient)
	}
	err := w.lock(ctx)
	if err == nil {
		w.unlock()
	}
	return err
}

// Sync returns nil when every line written so far is known to be with the peer. Over http
// and https it is Flush: the answers have confirmed the lines. Over tcp and tls it ends the
// connection in order, waits until the peer has read to its end and closed too, and lets
// the next Write dial again. If Options.CloseTimeout ends first, the error wraps
// context.DeadlineExceeded, and the next Sync waits for these lines too.
//
// Lines lost since the last Sync that said so are an error that wraps line.ErrLost; do not
// send them again. So is, once, a connection that broke with lines in flight. After Close
// it returns the error of Close.
//
// With Options.Spill it also waits for the lines on disk, except while the peer fails. It
// calls fsync for those it leaves there, and its error wraps line.ErrPending.
func (w *Writer) Sync() error {
	ctx, cancel := context.WithTimeout(context.Background(), w.opt.CloseTimeout)
	defer cancel()
	return w.sync(ctx)
}

func (w *Writer) sync(ctx context.Context) error {
	defer w.tell(false)
	var err error
	if w.spill != nil && !w.isDone() {
		err = w.settleAll(ctx, false)
	}
	if err == nil {
		if err := w.lock(ctx); err != nil {
			return w.wrap(err)
		}
		defer w.unlock()
		if w.isDone() {
			return w.err
		}
		if err = w.out.confirm(ctx); err != nil {
			w.countError(err)
		}
	}
	if w.life.Err() == nil { // else Shutdown tells it
		err = errors.Join(err, w.newLosses())
	}
	if err != nil {
		return w.wrap(err)
	}
	return nil
}

func (w *Writer) isDone() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// Close is Shutdown with Options.CloseTimeout.
func (w *Writer) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), w.opt.CloseTimeout)
	defer cancel()
	return w.Shutdown(ctx)
}

// Shutdown refuses new Writes, waits for the running ones and ends the connection as Sync
// does. When ctx ends first it cancels the running Writes, whose callers get their lines
// back with os.ErrClosed, and its error says how many. Later calls return what the first
// returned.
//
// With Options.Spill it sends lines from disk until ctx ends. The others stay for the next
// Writer with the same folder; the error says how many and wraps line.ErrPending.
func (w *Writer) Shutdown(ctx context.Context) error {
	w.mu.Lock()
	first := !w.closing
	w.closing = true
	if first && w.running == 0 {
		close(w.idle)
	}
	w.mu.Unlock()
	if !first {
		select {
		case <-w.done:
			return w.err
		case <-ctx.Done():
			if w.isDone() {
				return w.err
			}
			return w.wrap(fmt.Errorf("wait for another Shutdown: %w", ctx.Err()))
		}
	}

	var left error
	select {
	case <-w.idle:
	case <-ctx.Done():
		if w.spill == nil {
			left = fmt.Errorf("shut down with %d lines on the way, handed back to their callers: %w", w.Stats().Pending, ctx.Err())
		}
		w.kill()
		<-w.idle
	}
	if w.spill != nil {
		left = w.spill.finish(ctx)
	}
	if w.lock(ctx) != nil {
		w.kill() // cancels the Sync that holds the semaphore
		w.sem <- struct{}{}
	}
	err := w.out.confirm(ctx)
	if err != nil {
		w.countError(err)
	}
	w.out.close()
	if err = errors.Join(left, err, w.newLosses()); err != nil {
		w.err = w.wrap(err)
	}
	w.kill()
	w.tell(true)
	close(w.done)
	w.unlock()
	w.teller.End() // OnError may call methods of w: no lock is held
	return w.err
}
