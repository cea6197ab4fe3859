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
	note topic = aside.Note + iota // there are few, or who tells sees to it
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

// tell passes err on if it is time for the topic. It reports false if it did not.
func (t *teller) tell(of topic, err error) bool { return t.Tell(t.onError, int(of), err) }

// stoppedTimer returns a timer that runs f when it was set and has ended.
func stoppedTimer(f func()) *time.Timer {
	t := time.AfterFunc(time.Hour, f)
	t.Stop()
	return t
}

// tellLosses tells how many lines were dropped since it last did, and looks again
// after tellEvery, until nothing was, or this is the end.
func (w *Writer) tellLosses(end bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := &w.tally
	var lost []string
	for r, n := range t.dropped.by {
		if n > t.toldLost[r] && reason(r) != shutdown {
			lost = append(lost, fmt.Sprintf("%d (%s)", n-t.toldLost[r], words[r]))
		}
	}
	if t.alarmed = lost != nil && !end; t.alarmed {
		w.lossTimer.Reset(tellEvery)
	}
	if lost == nil {
		return
	}
	err := because(fmt.Errorf("%w: %s", line.ErrLost, strings.Join(lost, ", ")), w.failureLocked())
	if w.teller.tell(note, fmt.Errorf("slab: %w", err)) {
		t.toldLost = t.dropped.by
	}
}

// lastWords is how long Shutdown waits after its deadline for what should come soon:
// less than a Logger waits for it.
const lastWords = 20 * time.Millisecond

// awaitSoon waits until done is closed, for lastWords at the most.
func awaitSoon(done <-chan struct{}) {
	select {
	case <-done:
		return
	default:
	}
	patience := time.NewTimer(lastWords)
	defer patience.Stop()
	select {
	case <-done:
	case <-patience.C:
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
