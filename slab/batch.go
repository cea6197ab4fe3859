package slab

import (
	"bytes"
	"time"
)

// flight is what run has in hand, guarded by mu.
type flight struct {
	slab   *slab  // of main; nil between slabs
	main   batch  // the slab
	front  batch  // what goes before it: a line kept of a slab that was given up, or notices
	held   *slab  // in a file, with front's line in it; nil otherwise
	popped uint64 // slabs taken off the queue since New

	inside string   // the method of a destination other than Write that run is in, or ""
	calls  [2]*call // of Write, one for each outlet; nil where none is under way
	over   bool     // the failover is in use
	mute   bool     // a write-through has waited in vain; cleared by progress
}

// idle reports whether run has nothing to write.
func (f *flight) idle() bool { return f.slab == nil && f.front.data == nil }

// batch is whole lines on their way out. What is guarded by mu is changed by
// run alone, which reads it without.
type batch struct {
	data  []byte // guarded by mu; nil if there is nothing to write
	whole int    // guarded by mu; the lines before it are with a destination or lost
	lines uint64 // guarded by mu; in data[whole:] and in the ledger
	class class  // guarded by mu; of front's line
	pos   uint64 // guarded by mu; number of the first byte among all that was ever in hand

	// owned by run
	out    *outlet   // the one that has taken data[whole:off], or nil
	off    int       // whole, or within the line there
	tried  bool      // a call was made
	since  time.Time // of the first failure after the last progress
	notice counts    // what it announces
}

// launchLocked takes s in hand.
func (w *Writer) launchLocked(s *slab) {
	f := &w.flight
	f.slab = s
	f.popped++
	w.io.unmeasured = s.lines <= fewLines
	f.main = batch{data: s.data, lines: uint64(s.lines), pos: w.io.handed}
	w.io.handed += uint64(len(s.data))
	w.io.owed.add(s.gap)
}

// current returns what is to be written next.
func (w *Writer) current() *batch {
	f := &w.flight
	if w.io.unmeasured {
		w.measure()
	}
	if f.front.data == nil && !f.main.tried && w.noticeDue() {
		w.setFront(batch{data: w.io.owed.appendNotices(nil, time.Now()), pos: w.io.handed, notice: w.io.owed})
		w.io.handed += uint64(len(f.front.data))
		w.io.owed = counts{}
	}
	if f.front.data != nil {
		return &f.front
	}
	return &f.main
}

// measure looks for the longest line of the slab in hand.
func (w *Writer) measure() {
	w.io.unmeasured = false
	longest := longestLine(w.flight.slab.data)
	w.mu.Lock()
	w.tally.lineMax = max(w.tally.lineMax, longest)
	w.mu.Unlock()
}

// fewLines is up to how many lines of a slab are measured one by one.
const fewLines = 64

func longestLine(p []byte) (longest int) {
	for len(p) > 0 {
		n := lineEnd(p, 0)
		longest = max(longest, n)
		p = p[n:]
	}
	return longest
}

// lineEnd returns where the line that holds p[i] ends.
func lineEnd(p []byte, i int) int {
	if n := bytes.IndexByte(p[i:], '\n'); n >= 0 {
		return i + n + 1
	}
	return len(p)
}

func (w *Writer) setFront(b batch) {
	w.mu.Lock()
	w.flight.front = b
	w.mu.Unlock()
}

// noticeDue reports whether a loss should be announced now: not while the
// destination fails, or the announcement would hold up the lines, unless there
// are none and none will come.
func (w *Writer) noticeDue() bool {
	return w.io.owed != counts{} && !w.opts.NoLossNotice && (w.io.lastWord || !w.failing())
}

// creditLocked books that the lines of b before byte end are with outlet o.
func (w *Writer) creditLocked(b *batch, end int, o *outlet) {
	whole, done := len(b.data), b.lines
	if end < len(b.data) {
		whole = b.whole + bytes.LastIndexByte(b.data[b.whole:end], '\n') + 1
		done = uint64(bytes.Count(b.data[b.whole:whole], newline))
	}
	if b == &w.flight.front && b.notice != (counts{}) {
		w.tally.notices += uint64(bytes.Count(b.data[b.whole:whole], newline))
	} else {
		done = min(done, b.lines) // none are left if they were dropped by Shutdown
		b.lines -= done
		w.tally.written += done
		if o.second {
			w.tally.failedOver += done
		}
	}
	b.whole = whole
	if b == &w.flight.main {
		w.deliveredLocked(w.flight.slab, whole)
	}
}

// doneLocked lets go of b, of which every line is accounted for. It returns the
// producers that have got in, linked, for signal.
func (w *Writer) doneLocked(b *batch) (served *waiter) {
	f := &w.flight
	s := f.slab
	if b == &f.front {
		s, f.front, f.held = f.held, batch{}, nil
		if s == nil {
			return nil
		}
		return w.freeLocked(s)
	}
	f.slab, f.main = nil, batch{}
	if w.usedLocked(s) {
		return nil
	}
	return w.freeLocked(s)
}

// giveUp ends the turn of b, for which the destinations have failed too long.
func (w *Writer) giveUp(b *batch) {
	w.mu.Lock()
	f := &w.flight
	b.since = time.Time{}
	if w.abandoned { // then what is left is dropped for that
		w.mu.Unlock()
		return
	}
	if b == &f.front && b.notice != (counts{}) && !w.torn(b) {
		w.io.owed.add(b.notice)
		f.front = batch{} // the slab behind it has its own turn
		w.mu.Unlock()
		return
	}
	if f.slab == nil {
		w.mu.Unlock()
		return
	}
	from := f.main.whole
	if b == &f.main && w.torn(b) {
		from = lineEnd(b.data, b.whole)
		f.front = batch{
			data:  bytes.Clone(b.data[b.whole:from]),
			lines: 1,
			class: f.slab.classAt(b.whole),
			pos:   b.pos + uint64(b.whole),
			out:   b.out,
			off:   b.off - b.whole,
		}
	}
	lost := w.tally.dropped.add(gaveUp, f.slab.countBy(from))
	w.tally.lossErr = w.tally.lastErr
	err := w.tally.lossErr
	var served *waiter
	if from > f.main.whole && f.slab.begun {
		w.holdLocked(from)
	} else {
		served = w.doneLocked(&f.main)
	}
	w.mu.Unlock()
	signal(served)
	if lost > 0 {
		w.io.owed[gaveUp] += lost
		w.blame(lost, err)
	}
}

// torn reports whether a destination has a part of the first line of b that is
// not whole.
func (w *Writer) torn(b *batch) bool {
	if b.off > b.whole {
		return true
	}
	for _, o := range w.io.outlets {
		if o != nil && len(o.torn) > 0 && o.tornPos == b.pos+uint64(b.whole) {
			return true
		}
	}
	return false
}

// usedLocked reports whether a call of a destination's Write holds s.
func (w *Writer) usedLocked(s *slab) bool {
	for _, c := range w.flight.calls {
		if c != nil && c.slab == s {
			return true
		}
	}
	return false
}

// freeLocked makes s free and returns the producers that have got in, linked,
// for signal.
func (w *Writer) freeLocked(s *slab) (served *waiter) {
	w.forgetLocked(s)
	s.data, s.gap = nil, counts{}
	f := &w.filling
	f.free = append(f.free, s)
	if f.kept && len(f.free) >= f.reserve {
		f.kept, w.end = false, len(w.buf) // s is the reserve now
	}
	return w.serveLocked()
}

// dropRestLocked drops what is left of the batches that no call of a
// destination is inside of, because the deadline of Shutdown has passed, and
// returns the number of lines.
func (w *Writer) dropRestLocked() (lost uint64) {
	f := &w.flight
	if f.slab != nil && f.main.lines > 0 && !w.coveredLocked(&f.main) && !f.slab.begun {
		lost += w.tally.dropped.add(shutdown, f.slab.countBy(f.main.whole))
		f.main.lines = 0
	}
	if f.front.lines > 0 && !w.coveredLocked(&f.front) && f.held == nil {
		w.tally.dropped[f.front.class][shutdown]++
		f.front.lines = 0
		lost++
	}
	return lost
}

// coveredLocked reports whether a call of a destination's Write is inside of b.
func (w *Writer) coveredLocked(b *batch) bool {
	for _, c := range w.flight.calls {
		if c != nil && b.holds(c) {
			return true
		}
	}
	return false
}

// holds reports whether c writes a part of b.
func (b *batch) holds(c *call) bool {
	return !c.mend && b.pos <= c.pos && c.pos < b.pos+uint64(len(b.data))
}
