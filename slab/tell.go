package slab

import (
	"fmt"
	"strings"
	"time"

	"github.com/rollway/rollway/internal/aside"
	"github.com/rollway/rollway/line"
)

// topic is what OnError is told of, at most once a minute; of a note each time.
type topic int

const (
	note topic = aside.Note + iota
	loss
	takeover
	failing  // of the destination; one more is of the failover
	stalling = 2 + failing
)

const tellEvery = aside.TellEvery

// teller passes errors on to OnError.
type teller struct {
	onError func(error) // read-only; nil if nobody is told
	aside.Teller
}

// tell passes err on if it is time for the topic.
func (t *teller) tell(of topic, err error) { t.Tell(t.onError, int(of), err) }

// stoppedTimer returns a timer that runs f when it was set and has ended.
func stoppedTimer(f func()) *time.Timer {
	t := time.AfterFunc(time.Hour, f)
	t.Stop()
	return t
}

// tellLosses tells how many lines were dropped since it last did, and looks
// again after a while. It runs in a goroutine of its own.
func (w *Writer) tellLosses() {
	w.mu.Lock()
	t := &w.tally
	var lost []string
	for r, n := range t.dropped.by {
		if n > t.toldLost[r] && reason(r) != shutdown {
			lost = append(lost, fmt.Sprintf("%d (%s)", n-t.toldLost[r], words[r]))
		}
	}
	t.toldLost = t.dropped.by
	t.alarmed = lost != nil && !w.stopped
	of := loss
	if t.alarmed {
		w.lossTimer.Reset(tellEvery)
	} else {
		of = note // nothing follows
	}
	err := because(fmt.Errorf("%w: %s", line.ErrLost, strings.Join(lost, ", ")), w.failureLocked())
	w.mu.Unlock()
	if lost != nil {
		w.teller.tell(of, fmt.Errorf("slab: %w", err))
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
		left = tellEvery
	}
	w.watch.Reset(left)
	w.mu.Unlock()
	if err != nil {
		w.teller.tell(in.out.topic(stalling), fmt.Errorf("slab: %w", err))
	}
}
