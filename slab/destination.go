package slab

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"
)

// notLines as the number of lines marks bytes that are not in the ledger.
const notLines = -1

// push writes data, which holds the given number of lines, until the
// destination has taken all of it. It returns what was not taken, which is
// nothing unless Retry.GiveUp or the deadline of Shutdown ended the attempt.
func (w *Writer) push(data []byte, lines int) (rest []byte) {
	var since time.Time // of the first failure after the last progress
	for retry := false; len(data) > 0; retry = true {
		if !w.enter("Write", retry) {
			return data
		}
		n, after, err := w.write(data)
		done := 0
		switch {
		case lines == notLines:
		case n == len(data):
			done = lines
		default:
			done = bytes.Count(data[:n], newline)
		}
		data = data[n:]
		if lines != notLines {
			lines -= done
		}
		if !w.leave(n, uint64(done), err) {
			return data
		}
		w.report(err)
		if err == nil || n > 0 {
			w.io.tries = 0
			since = time.Time{}
			if after == 0 {
				continue
			}
		}
		if len(data) == 0 {
			break // all was taken, and yet it failed
		}
		now := time.Now()
		if since.IsZero() {
			since = now
		}
		wait := max(w.backoff(), after)
		giveUp := w.opts.Retry.GiveUp
		if giveUp > 0 {
			wait = min(wait, giveUp-now.Sub(since))
		}
		if !w.sleep(wait, after > 0) || giveUp > 0 && time.Since(since) >= giveUp {
			return data
		}
	}
	return nil
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

// sleep waits for d and reports whether the Writer has not been abandoned
// meanwhile. The first wait that meets Close ends there, so that the drain
// starts with an attempt, unless the destination has asked for the wait.
func (w *Writer) sleep(d time.Duration, asked bool) bool {
	closing := w.closing
	if asked || w.io.hurried {
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
func (w *Writer) enter(method string, retry bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.abandoned {
		return false
	}
	w.flight.inside = method
	if retry {
		w.tally.retries++
	}
	return true
}

// leave books what a Write of the destination has done and reports whether
// the Writer has not been abandoned meanwhile. If it has, the lines that were
// inside and did not get out are lost now.
func (w *Writer) leave(n int, lines uint64, err error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flight.inside = ""
	w.flight.left -= lines
	w.tally.written += lines
	w.tally.bytes += uint64(n)
	w.tally.lastErr = err
	if err != nil {
		w.tally.errors++
	}
	if w.abandoned {
		w.tally.dropped.Shutdown += w.flight.left
		w.flight.left = 0
	}
	return !w.abandoned
}

// write calls the destination's Write once. n is in range, and less than
// len(p) only with an error; after is how long the error asks to be left alone.
func (w *Writer) write(p []byte) (n int, after time.Duration, err error) {
	defer func() {
		if v := recover(); v != nil {
			n, after, err = 0, 0, panicked("Write", v)
		}
	}()
	n, err = w.dst.Write(p)
	n = min(max(n, 0), len(p))
	if n < len(p) && err == nil {
		err = io.ErrShortWrite
	}
	if err != nil {
		after = retryAfter(err)
	}
	return n, after, err
}

// retryAfter returns how long err asks to be left alone.
func retryAfter(err error) time.Duration {
	var asks interface{ RetryAfter() time.Duration }
	if errors.As(err, &asks) {
		return max(asks.RetryAfter(), 0)
	}
	return 0
}

// panicked turns what a method of the destination panicked with into an error.
func panicked(method string, v any) error {
	if err, ok := v.(error); ok {
		return fmt.Errorf("slab: destination panicked in %s: %w", method, err)
	}
	return fmt.Errorf("slab: destination panicked in %s: %v", method, v)
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
		w.onError(fmt.Errorf("slab: write to the destination: %w", err))
	}
}

// blame tells OnError that lines were given up, once in an episode of failure.
func (w *Writer) blame(lost uint64, err error) {
	if !w.io.blamed {
		w.io.blamed = true
		w.onError(fmt.Errorf("slab: gave up %s after %v: %w", count(lost), w.opts.Retry.GiveUp, err))
	}
}

func (w *Writer) onError(err error) {
	if w.opts.OnError == nil {
		return
	}
	w.io.reported = time.Now()
	defer func() { _ = recover() }()
	w.opts.OnError(err)
}
