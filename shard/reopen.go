package shard

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/rollway/rollway/internal/onsignal"
)

// reopening is a call of Reopen under way.
type reopening struct {
	done chan error // holds the result
}

// Reopen has the file opened anew by its path, for logrotate's create mode after
// it has renamed the file: records that are not written yet go to the new one,
// and the old one is not written to any more. It waits for the write under way,
// no longer than Options.CloseTimeout. For a Writer that New gave it calls the
// destination's Reopen() error; its error wraps errors.ErrUnsupported if there
// is none. After Close it wraps os.ErrClosed.
func (w *Writer) Reopen() error {
	ctx, cancel := context.WithTimeout(context.Background(), w.opts.CloseTimeout)
	defer cancel()
	r := &reopening{done: make(chan error, 1)}
	w.mu.Lock()
	if w.stopped {
		w.mu.Unlock()
		return fmt.Errorf("shard: reopen: %w", os.ErrClosed)
	}
	w.reopens = append(w.reopens, r)
	w.mu.Unlock()
	select {
	case w.prod <- struct{}{}:
	default:
	}
	w.wakeUp()
	var err error
	select {
	case err = <-r.done:
	case <-w.finished:
		select {
		case err = <-r.done:
		default:
			err = os.ErrClosed
		}
	case <-ctx.Done():
		err = ctx.Err()
		w.mu.Lock()
		w.reopens = slices.DeleteFunc(w.reopens, func(o *reopening) bool { return o == r })
		w.mu.Unlock()
	}
	if err != nil {
		return fmt.Errorf("shard: reopen: %w", err)
	}
	return nil
}

// reopenDueLocked reports whether the destination is to be reopened now: not
// while it has a part of a record.
func (w *Writer) reopenDueLocked() bool {
	return len(w.reopens) > 0 && !w.io.torn && (len(w.io.text) == 0 || len(w.io.text) == w.io.textSize)
}

// reopen reopens the destination for all calls that wait for it.
func (w *Writer) reopen() {
	w.mu.Lock()
	if !w.reopenDueLocked() || w.abandoned {
		w.mu.Unlock()
		return
	}
	calls := w.reopens
	w.reopens = nil
	w.enterLocked("Reopen")
	w.mu.Unlock()
	f := func() error { return fmt.Errorf("the destination has no Reopen: %w", errors.ErrUnsupported) }
	if dst, ok := w.dst.(interface{ Reopen() error }); ok {
		f = dst.Reopen
	}
	guard("Reopen", f, func(err error) {
		w.mu.Lock()
		w.exitLocked()
		w.mu.Unlock()
		for _, r := range calls {
			r.done <- err
		}
	})
}

// ReopenOn calls Reopen whenever the process gets one of the signals, as after
// logrotate's postrotate script: w.ReopenOn(syscall.SIGHUP). Without a call of
// it the Writer leaves all signals alone. It ends with stop, which does not wait
// and may be called again, or with Close. The errors of Reopen go to
// Options.OnError. Windows has no SIGHUP.
func (w *Writer) ReopenOn(signals ...os.Signal) (stop func()) {
	return onsignal.Call(func() {
		if err := w.Reopen(); err != nil {
			w.onError(err)
		}
	}, w.closing, nil, signals...)
}
