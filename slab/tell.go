package slab

import (
	"fmt"
	"strings"
	"time"

	"github.com/rollway/rollway/internal/aside"
	"github.com/rollway/rollway/line"
)

// Topics of OnError: a note is told each time, the others at most once a minute.
const (
	note = aside.Note + iota
	takeover
	failing  // the destination; the next topic is the failover's
	stalling = 2 + failing
)

// stoppedTimer returns a stopped timer that runs f on a goroutine of its own.
func stoppedTimer(f func()) *time.Timer {
	t := time.AfterFunc(time.Hour, f)
	t.Stop()
	return t
}

// tellLosses tells OnError how many lines were dropped since the last report. It
// repeats after aside.TellEvery until nothing was dropped, or at the end of the Writer.
func (w *Writer) tellLosses(end bool) {
	w.telling.Lock()
	defer w.telling.Unlock()
	t := &w.tally
	w.mu.Lock()
	dropped, cause := t.dropped.by, w.failureLocked()
	dropped[shutdown] = 0
	if t.alarmed = dropped != t.toldLost && !end; t.alarmed {
		w.lossTimer.Reset(aside.TellEvery)
	}
	w.mu.Unlock()
	var lost []string
	for r, n := range dropped {
		if n > t.toldLost[r] {
			lost = append(lost, fmt.Sprintf("%d (%s)", n-t.toldLost[r], reasonText[r]))
		}
	}
	err := because(fmt.Errorf("%w: %s", line.ErrLost, strings.Join(lost, ", ")), cause)
	if lost != nil && w.teller.Tell(note, later("slab: %w", err)) {
		t.toldLost = dropped
	}
}

// watchLocked starts the timer of tellStall for a call that begins. One timer serves
// all calls that begin before it fires.
func (w *Writer) watchLocked() {
	if !w.tally.watched {
		w.tally.watched = true
		w.watch.Reset(w.opts.MaxWait)
	}
}

// tellStall tells OnError of a call that lasts too long, and repeats while calls are
// active. It runs on a goroutine of its own.
func (w *Writer) tellStall() {
	w.mu.Lock()
	in, active := w.activeLocked()
	if w.tally.watched = active; !active {
		w.mu.Unlock()
		return
	}
	left, err := w.stalledLocked(in)
	if left = min(left, w.opts.MaxWait); err != nil {
		left = aside.TellEvery
	}
	w.watch.Reset(left)
	w.mu.Unlock()
	if err != nil {
		w.teller.Tell(in.out.topic(stalling), fmt.Errorf("slab: %w", err))
	}
}
