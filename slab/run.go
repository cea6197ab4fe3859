package slab

import (
	"bytes"
	"time"
)

// idleTicks is how many ticks in a row find nothing to do before run stops its
// ticker and waits for the next line to wake it. Waking it costs a producer
// some microseconds, a tick costs the process about as much.
const idleTicks = 8

// flight is what run has taken off the queue, guarded by mu.
type flight struct {
	slab   *slab  // nil between slabs
	left   uint64 // lines of slab, once counted, and of ioState.carry that are not written
	popped uint64 // slabs taken off the queue since New
	inside string // the method of the destination that run is in, or ""
}

// ioState is owned by run.
type ioState struct {
	ticker *time.Ticker
	idle   int // ticks in a row that found nothing

	// carry is the rest of a line of which the destination has taken a part
	// and whose slab was given up.
	carry       []byte
	carryNotice bool // it is of a loss notice, not of a line

	owed Drops // lost and not yet announced

	// An episode of failure begins with a call of the destination's Write that
	// fails and ends with one that does not.
	failing  bool
	blamed   bool      // a loss of this episode was reported to OnError
	reported time.Time // when OnError was last called
	tries    int       // calls that failed since the last progress
	hurried  bool      // a wait was cut short because of Close
}

// job is what run does next.
type job int

const (
	jobStop   job = iota
	jobSlab       // deliver flight.slab
	jobCarry      // finish the carried line
	jobNotice     // announce what is owed
	jobSync       // sync the destination for the barriers at the front
)

// run owns the destination. It ends when Close was called and everything is
// done, or when the deadline of Shutdown has passed and no call of the
// destination is under way.
func (w *Writer) run() {
	w.io.ticker = time.NewTicker(w.opts.FlushInterval)
	defer w.io.ticker.Stop()
	for {
		switch j, s, lines := w.next(); j {
		case jobSlab:
			w.deliver(s, lines)
		case jobCarry:
			w.pushCarry()
		case jobNotice:
			w.announce()
		case jobSync:
			w.syncBarriers()
		case jobStop:
			w.finish()
			return
		}
	}
}

// next waits for something to do. With jobSlab come the slab, now in flight, and
// the number of its lines if it is known, or else -1.
func (w *Writer) next() (j job, s *slab, lines int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		if w.abandoned {
			w.stopped = true
			return jobStop, nil, 0
		}
		empty := w.queue.n == 0 && len(w.io.carry) == 0
		if empty && w.filling.cur == nil {
			w.io.owed.add(w.filling.gap)
			w.filling.gap = Drops{}
			if w.noticeDue() {
				return jobNotice, nil, 0
			}
		}
		if w.passBarriersLocked() {
			return jobSync, nil, 0
		}
		if w.queue.n > 0 {
			s = w.queue.pop()
			w.flight.slab = s
			w.flight.left += uint64(max(s.lines, 0))
			w.flight.popped++
			w.io.owed.add(s.gap)
			return jobSlab, s, s.lines
		}
		if w.filling.cur != nil && (w.closed || len(w.io.carry) > 0) {
			w.sealLocked()
			continue
		}
		if len(w.io.carry) > 0 {
			return jobCarry, nil, 0
		}
		if w.closed {
			w.stopped = true
			return jobStop, nil, 0
		}
		w.parkLocked()
	}
}

// parkLocked waits, with mu released, until there may be something to do.
func (w *Writer) parkLocked() {
	w.parked = true
	w.dozing = w.io.idle >= idleTicks && w.filling.cur == nil
	dozing := w.dozing
	w.mu.Unlock()
	ticked := false
	if dozing {
		w.io.ticker.Stop()
		<-w.wake
		w.io.ticker.Reset(w.opts.FlushInterval)
	} else {
		select {
		case <-w.wake:
		case <-w.io.ticker.C:
			ticked = true
		}
	}
	w.mu.Lock()
	w.parked, w.dozing = false, false
	if ticked && w.filling.cur == nil {
		w.io.idle++
	} else {
		w.io.idle = 0
	}
	if ticked {
		w.sealLocked()
	}
}

// deliver writes s, after what has to go before it, and frees it. lines is how
// many it holds, -1 if that has not been counted.
func (w *Writer) deliver(s *slab, lines int) {
	if lines < 0 {
		lines = bytes.Count(s.data, newline)
		w.mu.Lock()
		w.countedLocked(s, lines)
		w.mu.Unlock()
	}
	rest := s.data
	if w.pushCarry() {
		if w.noticeDue() {
			w.announce()
		}
		if len(w.io.carry) == 0 {
			rest = w.push(s.data, lines)
		}
	}
	w.release(s, rest)
}

// pushCarry writes the carried line, if there is one, and reports whether it
// is out.
func (w *Writer) pushCarry() bool {
	lines := 1
	if w.io.carryNotice {
		lines = notLines
	}
	rest := w.push(w.io.carry, lines)
	w.io.carry = w.io.carry[:copy(w.io.carry, rest)]
	return len(w.io.carry) == 0
}

// noticeDue reports whether a loss should be announced now: not while the
// destination fails, or the announcement would hold up the lines.
func (w *Writer) noticeDue() bool {
	return w.io.owed != Drops{} && !w.io.failing && !w.opts.NoLossNotice
}

// announce writes a line for each reason for which lines were lost.
func (w *Writer) announce() {
	text, n := w.io.owed.appendNotices(nil, time.Now())
	rest := w.push(text, notLines)
	if len(rest) == len(text) {
		return // still owed
	}
	w.io.carry, w.io.carryNotice = append(w.io.carry[:0], rest...), true
	w.io.owed = Drops{}
	w.mu.Lock()
	w.tally.notices += n
	w.mu.Unlock()
}

// release frees s, drops the lines in rest, the part of s that was given up,
// and lets waiting producers in.
func (w *Writer) release(s *slab, rest []byte) {
	if n := len(s.data) - len(rest); len(rest) > 0 && n > 0 && s.data[n-1] != '\n' {
		end := bytes.IndexByte(rest, '\n') + 1
		w.io.carry, w.io.carryNotice = append(w.io.carry[:0], rest[:end]...), false
		rest = rest[end:]
	}
	lost := uint64(bytes.Count(rest, newline))

	w.mu.Lock()
	if w.abandoned {
		lost = 0 // counted as what it is by whoever set abandoned, or by leave
	}
	w.tally.dropped.GaveUp += lost
	w.flight.left -= lost
	if lost > 0 {
		w.tally.lossErr = w.tally.lastErr
	}
	err := w.tally.lossErr
	w.flight.slab = nil
	s.data, s.gap = nil, Drops{}
	f := &w.filling
	f.free = append(f.free, s)
	if f.kept && len(f.free) >= f.reserve {
		f.kept, w.end = false, len(w.buf) // s is the reserve now
	}
	served := w.serveLocked()
	w.mu.Unlock()

	signal(served)
	if lost > 0 {
		w.io.owed.GaveUp += lost
		w.blame(lost, err)
	}
}
