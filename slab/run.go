package slab

import (
	"time"
)

// idleTicks is how many ticks in a row find nothing to do before run stops its
// ticker and lets the next line wake it. That costs the producer some microseconds;
// a tick costs the process about as much.
const idleTicks = 8

// ioState is owned by run.
type ioState struct {
	destinations [2]*destination // the destination, and the failover or nil
	used         *destination    // the one called last, or nil

	call call // of the destination's Write, if there is no failover

	ticker *time.Ticker
	idle   int         // ticks in a row that found nothing
	alarm  *time.Timer // ends the wait for the next poll; stopped otherwise
	pace   pace

	unmeasured bool // the slab in hand has few lines, whose lengths are not known

	handed   uint64 // bytes in all batches so far; see batch.pos
	joined   []byte // memory for notices and the slab after them, which go in one Write
	lastWord bool   // only notices are left after Close; they get one attempt

	hurried bool // a wait was cut short because of Close

	turn int // index of the shard that retireDueLocked begins with
}

// job is what run does next.
type job int

const (
	jobStop  job = iota
	jobWrite     // call a destination's Write once
	jobSync      // sync the destination for the barriers at the front
)

// run owns the destinations. It ends when Close was called and everything is
// done, or when the deadline of Shutdown has passed and no call of a
// destination is active.
//
// Without a failover run calls the destination's Write on its own goroutine. If the
// call ends that goroutine, another run takes over: therefore all state that outlives
// a step is in the Writer.
func (w *Writer) run() {
	stopped := false
	defer func() {
		if !stopped {
			go w.run()
		}
	}()
	for _, err := range w.kept.notes {
		w.teller.Tell(note, err)
	}
	w.kept.notes = nil
	if w.io.call.exited {
		w.settle(&w.io.call)
	}
	for {
		switch w.next() {
		case jobWrite:
			w.attempt()
		case jobSync:
			w.syncBarriers()
		case jobStop:
			w.lossTimer.Stop()
			w.tellLosses(true)
			w.finish()
			w.watch.Stop()
			w.io.ticker.Stop()
			stopped = true
			return
		}
	}
}

// next waits for something to do.
func (w *Writer) next() job {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := &w.flight
	for {
		if w.expired {
			w.stopped = true
			return jobStop
		}
		w.keepTimeLocked()
		if f.idle() && w.queue.n == 0 && !w.unsealedLocked() {
			w.io.lastWord = w.closed
			if w.noticeDueLocked() {
				f.owed.add(w.filling.gap)
				w.filling.gap = counts{}
				return jobWrite
			}
		}
		if w.passBarriersLocked() {
			return jobSync
		}
		if f.slab == nil {
			if w.queue.n > 0 {
				if !w.copiedLocked(w.queue.at(0)) {
					continue
				}
				w.loadLocked()
			} else if f.front.size() > 0 && w.unsealedLocked() {
				w.sealAllLocked()
				continue
			}
		}
		if !f.idle() {
			return jobWrite
		}
		if w.closed {
			w.stopped = true
			return jobStop
		}
		w.parkLocked()
	}
}

// unsealedLocked reports whether a slab is being filled.
func (w *Writer) unsealedLocked() bool { return w.filling.cur != nil || w.filling.open > 0 }

// sealAllLocked queues every slab that is being filled.
func (w *Writer) sealAllLocked() {
	w.sealLocked()
	for i := range w.shards {
		w.retireLocked(&w.shards[i])
	}
}

// keepTimeLocked checks the ticker while run is too busy to park.
func (w *Writer) keepTimeLocked() {
	if len(w.shards) == 0 {
		return
	}
	select {
	case <-w.io.ticker.C:
		w.retireDueLocked()
	default:
	}
}

// copiedLocked reports whether s, in the queue, has all its data. Otherwise it waits
// for that, with mu released meanwhile, and returns false.
func (w *Writer) copiedLocked(s *slab) bool {
	if s.data == nil {
		if _, copied := s.term.end(); !copied {
			w.mu.Unlock()
			s.term.await()
			w.mu.Lock()
			return false
		}
		w.settleLocked(s)
	}
	return true
}

// parkLocked waits, with mu released, until there may be something to do.
func (w *Writer) parkLocked() {
	w.parked = true
	w.tickerOff = w.io.idle >= idleTicks && !w.unsealedLocked()
	poll := w.pollLocked()
	tickerOff := w.tickerOff
	w.mu.Unlock()
	ticked := w.rest(tickerOff, poll)
	w.mu.Lock()
	w.parked, w.tickerOff = false, false
	if ticked && !w.unsealedLocked() {
		w.io.idle++
	} else {
		w.io.idle = 0
	}
	if ticked {
		w.sealAllLocked()
	}
}

// pollLocked returns the time until run polls the queue, or 0 if it is to be woken.
func (w *Writer) pollLocked() time.Duration {
	w.io.pace.see(w.queue.pushed, w.age())
	if w.tickerOff || w.io.destinations[1] != nil {
		return 0
	}
	poll := w.io.pace.interval(&w.opts)
	w.polling = poll > 0
	return poll
}

// rest returns when run was woken, or has to poll or tick, or an abandoned call has
// returned. It reports whether it is a tick.
func (w *Writer) rest(tickerOff bool, poll time.Duration) (ticked bool) {
	tick := w.io.ticker.C
	if tickerOff {
		tick = nil
		w.io.ticker.Stop()
		defer w.io.ticker.Reset(w.opts.FlushInterval)
	}
	var alarm <-chan time.Time
	if poll > 0 {
		w.io.alarm.Reset(poll)
		defer w.io.alarm.Stop()
		alarm = w.io.alarm.C
	}
	select {
	case <-w.wake:
	case <-alarm:
	case <-tick:
		ticked = true
	case <-w.io.destinations[0].back():
	case <-w.io.destinations[1].back():
	}
	w.reap()
	return ticked
}
