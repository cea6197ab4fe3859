package slab

import (
	"fmt"
	"strings"
	"time"

	"github.com/rollway/rollway/internal/aside"
	"github.com/rollway/rollway/line"
)

// What OnError is told of: a note each time, the others at most once a minute.
const (
	note = aside.Note + iota
	takeover
	failing  // of the destination; one more is of the failover
	stalling = 2 + failing
)

// stoppedTimer returns a timer that runs f when it was set and has ended.
func stoppedTimer(f func()) *time.Timer {
	t := time.AfterFunc(time.Hour, f)
	t.Stop()
	return t
}

// tellLosses tells how many lines were dropped since it last did, and looks again
// after aside.TellEvery, until nothing was, or this is the end.
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
			lost = append(lost, fmt.Sprintf("%d (%s)", n-t.toldLost[r], words[r]))
		}
	}
	err := because(fmt.Errorf("%w: %s", line.ErrLost, strings.Join(lost, ", ")), cause)
	if lost != nil && w.teller.Tell(note, later("slab: %w", err)) {
		t.toldLost = dropped
	}
}

// watchLocked sees to it that tellStall looks after a call that begins. One
// timer serves all calls that begin before it ends.
func (w *Writer) watchLocked() {
	if !w.tally.watched {
		w.tally.watched = true
		w.watch.Reset(w.opts.MaxWait)
	}
}

// tellStall tells of a call that has lasted for too long, and looks again while
// calls are under way. It runs in a goroutine of its own.
func (w *Writer) tellStall() {
	w.mu.Lock()
	in, inside := w.insideLocked()
	if w.tally.watched = inside; !inside {
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
