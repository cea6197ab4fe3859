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
	owed   counts // lost before what comes next, and not yet announced

	inside inside   // the method of a destination other than Write that run is in
	calls  [2]*call // of Write, one for each outlet; nil where none is under way
	over   bool     // the failover is in use
	vain   bool     // a producer has waited in vain; cleared by progress
}

// idle reports whether run has nothing to write.
func (f *flight) idle() bool { return f.slab == nil && f.front.size() == 0 }

// batch is whole lines on their way out: notices, which are not in the ledger,
// and then the lines of a slab. Its bytes are numbered through both. What is
// guarded by mu is changed by run alone, which reads it without.
type batch struct {
	notices []byte        // guarded by mu
	data    []byte        // guarded by mu
	whole   int           // guarded by mu; the bytes before it are with a destination or lost
	lines   uint64        // guarded by mu; in data from whole on
	class   class         // guarded by mu; of front's line
	taken   time.Duration // guarded by mu; slab.taken
	pos     uint64        // guarded by mu; number of the first byte among all that was ever in hand

	// owned by run
	out     *outlet   // the one that has taken the bytes from whole to off, or nil
	off     int       // whole, or within the line there
	tried   bool      // a call was made
	noticed bool      // it has its notices, or may have none
	since   time.Time // of the first failure after the last progress
	notice  counts    // what the notices announce
}

// size returns how many bytes b has, 0 if there is nothing to write.
func (b *batch) size() int { return len(b.notices) + len(b.data) }

// rest returns what follows byte i in the notices, or in the data.
func (b *batch) rest(i int) []byte {
	if i < len(b.notices) {
		return b.notices[i:]
	}
	return b.data[i-len(b.notices):]
}

// lineEnd returns where the line ends that holds byte i.
func (b *batch) lineEnd(i int) int { return i + lineEnd(b.rest(i), 0) }

// lineStart returns where the line begins that holds byte i, which is not before
// whole.
func (b *batch) lineStart(i int) int {
	p, first := b.notices, 0
	if i >= len(p) {
		p, first = b.data, len(p)
	}
	from := max(b.whole-first, 0)
	return first + from + bytes.LastIndexByte(p[from:i-first], '\n') + 1
}

// line returns where in the slab byte i is, or 0 within the notices.
func (b *batch) line(i int) int { return max(0, i-len(b.notices)) }

// said returns how many notices are in the bytes before i.
func (b *batch) said(i int) int { return bytes.Count(b.notices[:min(i, len(b.notices))], newline) }

// unsaid returns what the notices from byte i on announce.
func (b *batch) unsaid(i int) counts {
	c, said := b.notice, b.said(i)
	for r := range c {
		if c[r] > 0 && said > 0 {
			c[r] = 0
			said--
		}
	}
	return c
}

// launchLocked takes the next slab of the queue in hand.
func (w *Writer) launchLocked() {
	f := &w.flight
	s := w.queue.pop()
	f.slab = s
	f.popped++
	f.owed.add(s.gap)
	w.io.unmeasured = s.lines <= fewLines && s.term == nil
	f.main = batch{data: s.data, lines: uint64(s.lines), taken: s.taken, noticed: s.pos > 0}
	w.numberLocked(s)
	f.main.pos = s.pos
}

// numberLocked numbers the bytes of s, which comes next, unless it was done.
func (w *Writer) numberLocked(s *slab) {
	if s.pos == 0 {
		s.pos = w.io.handed + 1
		w.io.handed += uint64(len(s.data))
	}
}

// current returns what is to be written next.
func (w *Writer) current() *batch {
	f := &w.flight
	if w.io.unmeasured && f.slab != nil {
		w.measure()
	}
	switch {
	case f.front.size() > 0:
		return &f.front
	case f.slab == nil: // there are only notices
		w.announce(&f.front)
		return &f.front
	case !f.main.tried && !f.main.noticed && f.owed != counts{} && !w.opts.NoNotice:
		w.announce(&f.main)
	}
	return &f.main
}

// announce puts notices of what is owed before the lines of b, so that the
// destination gets all in one call.
func (w *Writer) announce(b *batch) {
	f := &w.flight
	w.mu.Lock()
	defer w.mu.Unlock()
	b.notices, b.notice, b.noticed = f.owed.appendNotices(nil, time.Now()), f.owed, true
	f.owed = counts{}
	if b.data == nil {
		b.pos = w.io.handed + 1
	}
	w.io.handed += uint64(len(b.notices))
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

// aloneDueLocked reports whether a loss is to be announced without lines, of
// which there are none: when none will come, or none has come for a while, or
// somebody waits for what was announced, unless the destination fails.
func (w *Writer) aloneDueLocked() bool {
	if w.flight.owed == (counts{}) && w.filling.gap == (counts{}) || w.opts.NoNotice {
		return false
	}
	return w.io.lastWord || (w.io.idle > 0 || len(w.barriers) > 0) && !w.failing()
}

// creditLocked books that the lines of b before byte end are with outlet o.
func (w *Writer) creditLocked(b *batch, end int, o *outlet) {
	whole, done := b.size(), b.lines
	if end < whole {
		whole = b.lineStart(end)
		done = uint64(bytes.Count(b.data[b.line(b.whole):b.line(whole)], newline))
	}
	w.tally.notices += uint64(b.said(whole) - b.said(b.whole))
	done = min(done, b.lines) // none are left if they were dropped by Shutdown
	b.lines -= done
	w.tally.written += done
	if o.second {
		w.tally.failedOver += done
	}
	b.whole = whole
	if b == &w.flight.main {
		w.deliveredLocked(w.flight.slab, b.line(whole))
	}
}

// doneLocked lets go of b, of which every line is accounted for.
func (w *Writer) doneLocked(b *batch) {
	f := &w.flight
	s := f.slab
	if b == &f.front {
		s, f.front, f.held = f.held, batch{}, nil
	} else {
		f.slab, f.main = nil, batch{}
	}
	switch {
	case s == nil:
	case s.held > 0:
		s.over = true
	default:
		w.freeLocked(s)
	}
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
	if f.slab == nil {
		w.mu.Unlock()
		return
	}
	from := f.main.whole
	held := false
	if b == &f.main && w.torn(b) {
		from = b.lineEnd(b.whole)
		rest := bytes.Clone(b.rest(b.whole)[:from-b.whole])
		f.front = batch{pos: b.pos + uint64(b.whole), out: b.out, off: b.off - b.whole, taken: b.taken}
		if held = b.whole >= len(b.notices); held {
			f.front.data, f.front.lines, f.front.class = rest, 1, f.slab.classAt(b.line(b.whole))
		} else {
			f.front.notices = rest
		}
	}
	f.owed.add(f.main.unsaid(from))
	f.owed[gaveUp] += w.lostLinesLocked(gaveUp, f.slab, f.main.line(from))
	w.tally.lossErr = w.tally.failing
	if held && f.slab.begun {
		w.holdLocked(f.main.line(from))
	} else {
		w.doneLocked(&f.main)
	}
	w.unlockServed()
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

// freeLocked makes s free, for those who wait or who come. Its caller gives mu
// back with unlockServed.
func (w *Writer) freeLocked(s *slab) {
	w.putBackLocked(s)
	w.waiters.full = 0
	if w.filling.cur != nil {
		w.openLocked() // perhaps to more, as s is reserved now
	}
	w.serveLocked()
}

// putBackLocked adds s to the free slabs.
func (w *Writer) putBackLocked(s *slab) {
	w.forgetLocked(s)
	s.data, s.lines, s.gap, s.pos, s.over = nil, 0, counts{}, 0, false
	w.filling.free = append(w.filling.free, s)
}

// dropRestLocked drops what no call of a destination is inside of, because the
// deadline of Shutdown has passed, except what a file keeps. It returns the
// number of lines.
func (w *Writer) dropRestLocked() (lost uint64) {
	f := &w.flight
	for n := w.queue.n; n > 0; n-- {
		s := w.queue.pop()
		if s.begun || s.held > 0 {
			w.queue.push(s) // and pending
			continue
		}
		lost += w.lostLinesLocked(shutdown, s, 0)
		w.freeLocked(s)
	}
	if f.slab != nil && f.main.lines > 0 && !w.coveredLocked(&f.main) && !f.slab.begun {
		lost += w.lostLinesLocked(shutdown, f.slab, f.main.line(f.main.whole))
		f.main.lines = 0
	}
	if f.front.lines > 0 && !w.coveredLocked(&f.front) && (f.held == nil || !f.held.begun) {
		w.lostLocked(shutdown, f.front.class, 1)
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
	return !c.mend && c.pos < b.pos+uint64(b.size()) && b.pos < c.pos+uint64(c.size)
}
