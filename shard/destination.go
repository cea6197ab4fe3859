package shard

import (
	"fmt"
	"io"
	"time"

	"github.com/rollway/rollway/internal/backoff"
)

// vectored is a destination that takes many buffers in one call. It returns
// how many bytes of them it has taken, all of them if err is nil.
type vectored interface {
	WriteBuffers(bufs [][]byte) (n int64, err error)
}

// push calls the destination once with what is left of the batch. It returns
// false if the Writer has been abandoned.
func (w *Writer) push() (ok bool) {
	w.mu.Lock()
	if w.abandoned {
		w.mu.Unlock()
		return false
	}
	w.enterLocked("write")
	w.lent = true
	w.mu.Unlock()

	var n int64
	guard("write", func() (err error) {
		n, err = w.write()
		return err
	}, func(err error) {
		ok = w.leave(n, err)
		w.io.paused = err != nil && n == 0
		if !w.io.paused {
			w.io.tries, w.io.since = 0, time.Time{}
		}
		w.report(err)
	})
	return ok
}

// outcome is what came of a pause.
type outcome int

const (
	again     outcome = iota // it is worth another try
	gaveUp                   // Retry.GiveUp has passed without progress
	abandoned                // the deadline of Shutdown has passed
)

// pause waits after a call that failed.
func (w *Writer) pause() outcome {
	w.io.paused = false
	now := time.Now()
	if w.io.since.IsZero() {
		w.io.since = now
	}
	wait, limit := w.backoff(), w.opts.Retry.GiveUp
	if limit > 0 {
		wait = min(wait, limit-now.Sub(w.io.since))
	}
	switch {
	case !w.sleep(wait):
		return abandoned
	case limit > 0 && time.Since(w.io.since) >= limit:
		w.io.since = time.Time{}
		return gaveUp
	}
	return again
}

// backoff returns how long to wait after one more failed call.
func (w *Writer) backoff() time.Duration {
	d := backoff.Wait(w.io.tries, w.opts.Retry.Min, w.opts.Retry.Max)
	w.io.tries++
	return d
}

// sleep waits for d and reports whether the Writer has not been abandoned. The
// first wait that meets Close ends there, so that the drain starts with an
// attempt.
func (w *Writer) sleep(d time.Duration) bool {
	closing := w.closing
	if w.io.hurried {
		closing = nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-w.prod:
		w.io.tries = 0
	case <-closing:
		w.io.hurried = true
		w.io.tries = 0
	case <-w.abandon:
		return false
	}
	return true
}

// enter marks run as inside a method of the destination. It returns false if
// the Writer has been abandoned: then no method may be called but Close.
func (w *Writer) enter(method string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.abandoned {
		return false
	}
	w.enterLocked(method)
	return true
}

func (w *Writer) enterLocked(method string) {
	w.tally.inside, w.tally.since = method, time.Now()
	w.io.watch.Reset(w.opts.StallAfter)
}

// exitLocked is the end of what enter began.
func (w *Writer) exitLocked() time.Duration {
	w.io.watch.Stop()
	took := time.Since(w.tally.since)
	w.tally.inside = ""
	w.lent = false
	return took
}

// leave books what a write has done and reports whether the Writer has not
// been abandoned meanwhile. If it has, the records that were inside and did
// not get out are lost now.
func (w *Writer) leave(n int64, err error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	took := w.exitLocked()
	w.takenLocked(n)
	w.tally.flushed(took)
	w.tally.lastErr = err
	if err != nil {
		w.tally.errors++
	}
	if w.abandoned {
		w.dropBatchLocked()
	}
	return !w.abandoned
}

// dropBatchLocked counts what is left of the batch as lost to Shutdown.
func (w *Writer) dropBatchLocked() (lost uint64) {
	for _, t := range w.io.batch {
		t.data()
		left := t.records() - t.counted
		t.counted += left
		lost += left
		w.tally.shards[t.owner.Load()].shutdown += left
	}
	w.tally.shutdown += lost
	return lost
}

// write calls the destination once, with all of the batch if it is vectored.
// n is in range, and less than all that it was given only with an error.
func (w *Writer) write() (n int64, err error) {
	if w.framed {
		return w.writeBatches()
	}
	size := int64(0)
	if v, ok := w.dst.(vectored); ok {
		w.io.lent = w.io.lent[:0]
		for _, b := range w.io.bufs {
			if size > 0 && w.chunk > 0 && size+int64(len(b)) > int64(w.chunk) {
				break
			}
			size += int64(len(b))
			w.io.lent = append(w.io.lent, b)
		}
		n, err = v.WriteBuffers(w.io.lent)
	} else {
		b := w.io.bufs[0]
		if size = int64(len(b)); size == 0 {
			return 0, nil
		}
		var m int
		m, err = w.dst.Write(b)
		n = int64(m)
	}
	return inRange(n, size, err)
}

// inRange makes what a Write of size bytes returned what it may return.
func inRange(n, size int64, err error) (int64, error) {
	n = min(max(n, 0), size)
	if n < size && err == nil {
		err = io.ErrShortWrite
	}
	return n, err
}

// panicked turns what a method of the destination panicked with into an error.
func panicked(method string, v any) error {
	if err, ok := v.(error); ok {
		return fmt.Errorf("shard: destination panicked in %s: %w", method, err)
	}
	return fmt.Errorf("shard: destination panicked in %s: %v", method, v)
}

// report follows the episode of failure that err belongs to, or ends it, and
// tells OnError as often as Options.OnError says.
func (w *Writer) report(err error) {
	if err == nil {
		w.io.failing, w.io.blamed = false, false
		return
	}
	first := !w.io.failing
	w.io.failing = true
	if first || time.Since(w.io.reported) >= time.Second {
		w.io.reported = time.Now()
		w.onError(fmt.Errorf("shard: write to the destination: %w", err))
	}
}

// blame tells OnError that records were given up, once in an episode.
func (w *Writer) blame(lost uint64, err error) {
	if !w.io.blamed {
		w.io.blamed = true
		w.onError(fmt.Errorf("shard: gave up %s after %v: %w", count(lost), w.opts.Retry.GiveUp, err))
	}
}

// stalled is called by a timer when a call of the destination takes long.
func (w *Writer) stalled() {
	w.mu.Lock()
	method, since := w.tally.inside, w.tally.since
	if time.Since(since) < w.opts.StallAfter {
		method = "" // it is another call already
	}
	if method != "" {
		w.tally.stalls++
	}
	w.mu.Unlock()
	if method != "" {
		w.onError(fmt.Errorf("shard: the destination's %s has not returned for %v", method, time.Since(since).Round(time.Millisecond)))
	}
}

func (w *Writer) onError(err error) {
	if w.opts.OnError == nil {
		return
	}
	defer func() { _ = recover() }()
	w.opts.OnError(err)
}
