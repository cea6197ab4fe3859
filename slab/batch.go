package slab

import (
	"bytes"
	"slices"
	"time"
)

// flight is what run writes now, guarded by mu.
type flight struct {
	slab   *slab  // of main; nil between slabs
	main   batch  // the slab
	front  batch  // what goes before it: the torn line of a slab that was given up, or notices
	held   *slab  // the slab in the file that has front's line; nil otherwise
	popped uint64 // slabs taken off the queue since New
	owed   counts // losses to announce before the next lines

	active   activeCall // the method of a destination other than Write that run is in
	calls    [2]*call   // of Write, by destination; nil if none is active
	timedOut bool       // a producer has waited for room without success; cleared by progress
}

// idle reports whether run has nothing to write.
func (f *flight) idle() bool { return f.slab == nil && f.front.size() == 0 }

// batch is whole lines to be written: notices, which are not in the ledger, and then
// the lines of a slab. Its bytes are numbered through both. Only run changes the
// fields that mu guards, so run reads them without mu.
type batch struct {
	notices []byte        // guarded by mu
	data    []byte        // guarded by mu
	whole   int           // guarded by mu; the bytes before it are written or lost
	lines   uint64        // guarded by mu; in data from whole on
	class   class         // guarded by mu; of front's line
	taken   time.Duration // guarded by mu; slab.taken
	pos     uint64        // guarded by mu; number of the first byte among all ever loaded

	// owned by run
	out     *destination // the one that has written the bytes from whole to off, or nil
	off     int          // whole, or within the line there
	tried   bool         // a call was made
	noticed bool         // it has its notices, or must not get any
	since   time.Time    // of the first failure after the last progress
	notice  counts       // what the notices announce
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

// lineEnd returns the end of the line that contains byte i.
func (b *batch) lineEnd(i int) int { return i + lineEnd(b.rest(i), 0) }

// lineStart returns the start of the line that contains byte i >= whole.
func (b *batch) lineStart(i int) int {
	p, first := b.notices, 0
	if i >= len(p) {
		p, first = b.data, len(p)
	}
	from := max(b.whole-first, 0)
	return first + from + bytes.LastIndexByte(p[from:i-first], '\n') + 1
}

// line returns the offset of byte i in the slab, or 0 within the notices.
func (b *batch) line(i int) int { return max(0, i-len(b.notices)) }

// announced returns how many notices end before byte i.
func (b *batch) announced(i int) int { return bytes.Count(b.notices[:min(i, len(b.notices))], newline) }

// unannounced returns what the notices from byte i on announce.
func (b *batch) unannounced(i int) counts {
	c, announced := b.notice, b.announced(i)
	for r := range c {
		if c[r] > 0 && announced > 0 {
			c[r] = 0
			announced--
		}
	}
	return c
}

// loadLocked takes the next slab off the queue.
func (w *Writer) loadLocked() {
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

// numberLocked numbers the bytes of s, the next slab, unless it is numbered.
func (w *Writer) numberLocked(s *slab) {
	if s.pos == 0 {
		s.pos = w.io.handed + 1
		w.io.handed += uint64(len(s.data))
	}
}

// current returns the batch to write next.
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

// announce puts notices of the losses owed before the lines of b, so that one call
// writes both.
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

// measure finds the longest line of the loaded slab.
func (w *Writer) measure() {
	w.io.unmeasured = false
	longest := longestLine(w.flight.slab.data)
	w.mu.Lock()
	w.tally.LineMax = max(w.tally.LineMax, longest)
	w.mu.Unlock()
}

// fewLines is the most lines of a slab that are measured.
const fewLines = 64

func longestLine(p []byte) (longest int) {
	for len(p) > 0 {
		n := lineEnd(p, 0)
		longest = max(longest, n)
		p = p[n:]
	}
	return longest
}

// lineEnd returns the end of the line that contains p[i].
func lineEnd(p []byte, i int) int {
	if n := bytes.IndexByte(p[i:], '\n'); n >= 0 {
		return i + n + 1
	}
	return len(p)
}

// noticeDueLocked reports whether losses are to be announced although no lines
// follow: none will come, or none has come for a while, or a barrier waits. While the
// destination fails only the first of these counts.
func (w *Writer) noticeDueLocked() bool {
	if w.flight.owed == (counts{}) && w.filling.gap == (counts{}) || w.opts.NoNotice {
		return false
	}
	return w.io.lastWord || (w.io.idle > 0 || len(w.barriers) > 0) && !w.failing()
}

// creditLocked records that the lines of b before byte end are written to destination o.
func (w *Writer) creditLocked(b *batch, end int, o *destination) {
	whole, done := b.size(), b.lines
	if end < whole {
		whole = b.lineStart(end)
		done = uint64(bytes.Count(b.data[b.line(b.whole):b.line(whole)], newline))
	}
	w.tally.Notices += uint64(b.announced(whole) - b.announced(b.whole))
	done = min(done, b.lines) // none are left if they were dropped by Shutdown
	b.lines -= done
	w.tally.Written += done
	if o.second() {
		w.tally.FailedOver += done
	}
	b.whole = whole
	if b == &w.flight.main {
		w.deliveredLocked(w.flight.slab, b.line(whole))
	}
}

// doneLocked ends b: every line of it is accounted for.
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

// giveUp drops the lines of b, for which the destinations have failed too long.
func (w *Writer) giveUp(b *batch) {
	w.mu.Lock()
	f := &w.flight
	b.since = time.Time{}
	if w.expired || f.slab == nil { // expired: Shutdown drops the rest
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
	f.owed.add(f.main.unannounced(from))
	f.owed[gaveUp] += w.lostLinesLocked(gaveUp, f.slab, f.main.line(from))
	w.tally.lossErr = w.tally.failing
	if held && f.slab.begun {
		w.holdLocked(f.main.line(from))
	} else {
		w.doneLocked(&f.main)
	}
	w.unlockServed()
}

// torn reports whether a destination has written a part of the first line of b that
// is not whole.
func (w *Writer) torn(b *batch) bool {
	return b.off > b.whole || slices.ContainsFunc(w.io.destinations[:], func(o *destination) bool { return o != nil && o.tore(b) })
}

// freeLocked makes s free and serves the waiters. The caller releases mu with
// unlockServed.
func (w *Writer) freeLocked(s *slab) {
	w.releaseLocked(s)
	w.waiters.full = 0
	if w.filling.cur != nil {
		w.openLocked() // perhaps to lines of lower rank: s can be the reserved one now
	}
	w.serveLocked()
}

// releaseLocked adds s to the free slabs.
func (w *Writer) releaseLocked(s *slab) {
	w.forgetLocked(s)
	s.data, s.lines, s.gap, s.pos, s.over = nil, 0, counts{}, 0, false
	w.filling.free = append(w.filling.free, s)
}

// dropRestLocked drops the lines that no active call writes, because the deadline of
// Shutdown has passed, except those that a file keeps. It returns their number.
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

// coveredLocked reports whether an active call writes a part of b.
func (w *Writer) coveredLocked(b *batch) bool {
	return slices.ContainsFunc(w.flight.calls[:], func(c *call) bool { return c != nil && b.holds(c) })
}

// holds reports whether c writes a part of b.
func (b *batch) holds(c *call) bool {
	return !c.repair && c.pos < b.pos+uint64(b.size()) && b.pos < c.pos+uint64(c.size)
}
