package shard

import (
	"bytes"

	"fmt"
	"io"
	"math/rand/v2"
	"time"
)

// vectored is a destination that takes many buffers in one call. It returns
// how many bytes of them it has taken, all of them if err is nil.
type vectored interface {
	WriteBuffers(bufs [][]byte) (n int64, err error)
}

// outcome is what came of a push.
type outcome int

const (
	pushed    outcome = iota // some of the batch was taken, or it is worth another try
	gaveUp                   // Retry.GiveUp has passed without progress
	abandoned                // the deadline of Shutdown has passed
)

// push calls the destination once with what is left of the batch, and waits if
// that failed. since is when the failures began that no progress has ended.
func (w *Writer) push(since *time.Time) outcome {
	if !w.enter("write") {
		return abandoned
	}
	n, err := w.write()
	if !w.leave(n, err) {
		return abandoned
	}
	w.report(err)
	if err == nil || n > 0 {
		w.io.tries = 0
		*since = time.Time{}
		return pushed
	}
	return w.pause(since)
}

// pause waits after a call that failed.
func (w *Writer) pause(since *time.Time) outcome {
	now := time.Now()
	if since.IsZero() {
		*since = now
	}
	wait, limit := w.backoff(), w.opts.Retry.GiveUp
	if limit > 0 {
		wait = min(wait, limit-now.Sub(*since))
	}
	switch {
	case !w.sleep(wait):
		return abandoned
	case limit > 0 && time.Since(*since) >= limit:
		return gaveUp
	}
	return pushed
}

// backoff returns how long to wait after one more failed call.
func (w *Writer) backoff() time.Duration {
	r := w.opts.Retry
	d := r.Min
	for range w.io.tries {
		if d >= r.Max/2 {
			d = r.Max
			break
		}
		d *= 2
	}
	w.io.tries++
	return d - rand.N(d/2+1)
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
	w.tally.inside, w.tally.since = method, time.Now()
	w.io.watch.Reset(w.opts.StallAfter)
	return true
}

// exit is the end of what enter began.
func (w *Writer) exitLocked() time.Duration {
	w.io.watch.Stop()
	took := time.Since(w.tally.since)
	w.tally.inside = ""
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
	}
	w.tally.shutdown += lost
	return lost
}

// write calls the destination once, with all of the batch if it is vectored.
// n is in range, and less than all that it was given only with an error.
func (w *Writer) write() (n int64, err error) {
	defer func() {
		if v := recover(); v != nil {
			n, err = 0, panicked("write", v)
		}
	}()
	bufs, size := w.io.bufs, int64(0)
	if v, ok := w.dst.(vectored); ok {
		for _, b := range bufs {
			size += int64(len(b))
		}
		n, err = v.WriteBuffers(bufs)
	} else {
		size = int64(len(bufs[0]))
		if size == 0 {
			return 0, nil
		}
		var m int
		m, err = w.dst.Write(bufs[0])
		n = int64(m)
	}
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

// noticeDue reports whether a loss should be announced now: not while the
// destination fails, or the announcement would hold up the records.
func (w *Writer) noticeDue() bool {
	return !w.opts.NoLossNotice && !w.io.failing && w.drops.load(&w.tally) != w.io.announced
}

// announce writes a line for each reason for which records were lost. Only
// whole records are in the destination when it is called, or the batch's first
// one is to be ended first.
func (w *Writer) announce() {
	now := w.drops.load(&w.tally)
	text, notices := now.since(w.io.announced).appendNotices(nil, time.Now())
	for len(text) > 0 {
		if !w.enter("write") {
			return
		}
		n, err := w.writeText(text)
		text = text[n:]
		w.mu.Lock()
		w.exitLocked()
		w.tally.bytes += uint64(n)
		w.tally.lastErr = err
		if err != nil {
			w.tally.errors++
		}
		w.mu.Unlock()
		w.report(err)
		if err != nil && n == 0 && bytes.Count(text, newline) == int(notices) {
			return // still owed
		}
		if err != nil && !w.sleep(w.backoff()) {
			return
		}
	}
	w.io.announced = now
	w.mu.Lock()
	w.tally.notices += notices
	w.mu.Unlock()
}

func (w *Writer) writeText(p []byte) (n int, err error) {
	defer func() {
		if v := recover(); v != nil {
			n, err = 0, panicked("write", v)
		}
	}()
	n, err = w.dst.Write(p)
	n = min(max(n, 0), len(p))
	if n < len(p) && err == nil {
		err = io.ErrShortWrite
	}
	return n, err
}
