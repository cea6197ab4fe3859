package remote

import (
	"context"
	"errors"
	"fmt"
)

// Flush waits until the Writes begun before it have ended. A Write that has
// returned needs no Flush.
func (w *Writer) Flush(ctx context.Context) error {
	if err := w.lock(ctx); err != nil {
		return w.wrap(err)
	}
	w.unlock()
	w.tell(false)
	return nil
}

// Sync is SyncContext with Options.CloseTimeout.
func (w *Writer) Sync() error {
	ctx, cancel := context.WithTimeout(context.Background(), w.opt.CloseTimeout)
	defer cancel()
	return w.SyncContext(ctx)
}

// SyncContext returns nil when every line written so far is known to be with
// the peer. Over http and https it is Flush, for the answer to each request
// says so. Over tcp and tls it ends the connection in order, waits until the
// peer has read to its end and closed too, and lets the next Write dial again;
// it also returns, once, the error of a connection that broke with lines on
// the way since the last Sync. After Close it returns what Close returned.
func (w *Writer) SyncContext(ctx context.Context) error {
	if err := w.lock(ctx); err != nil {
		return w.wrap(err)
	}
	defer w.tell(false)
	defer w.unlock()
	select {
	case <-w.done:
		return w.err
	default:
	}
	if err := w.out.confirm(ctx); err != nil {
		w.countError(err)
		return w.wrap(err)
	}
	return nil
}

// Close is Shutdown with Options.CloseTimeout.
func (w *Writer) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), w.opt.CloseTimeout)
	defer cancel()
	return w.Shutdown(ctx)
}

// Shutdown refuses new Writes, waits for the running ones and ends the
// connection as SyncContext does. When ctx ends first it breaks off the
// running Writes, whose callers get their lines back with os.ErrClosed, and
// returns an error with the number of these lines. Later calls return what the
// first returned.
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
			return w.wrap(fmt.Errorf("wait for another Shutdown: %w", ctx.Err()))
		}
	}

	var left error
	select {
	case <-w.idle:
	case <-ctx.Done():
		left = fmt.Errorf("shut down with %d lines on the way, handed back to their callers: %w", w.Stats().Pending, ctx.Err())
		w.kill()
		<-w.idle
	}
	if w.lock(ctx) != nil {
		w.kill() // breaks off the Sync that holds the turn
		w.turn <- struct{}{}
	}
	err := w.out.confirm(ctx)
	if err != nil {
		w.countError(err)
	}
	w.out.close()
	if err = errors.Join(left, err); err != nil {
		w.err = w.wrap(err)
	}
	w.kill()
	close(w.done)
	w.unlock()
	w.tell(true)
	return w.err
}
