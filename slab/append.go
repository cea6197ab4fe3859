package slab

import (
	"bytes"
	"fmt"
	"os"
	"time"

	"github.com/rollway/rollway/internal/aside"
	"github.com/rollway/rollway/line"
)

// appending is the state of one Write while its lines are copied into slabs.
type appending struct {
	rest     []byte // not yet in a slab
	class    class
	rank     rank
	left     int // bytes of the lines left out because they are too large
	tooLarge int // size of the longest of them, newline included

	// With several shards:
	until        time.Duration // the age of the Writer at which the call stops waiting, or 0
	try, through bool          // the call is TryWriteLevel; WriteLevel would write through
}

// writeSlow is Write without the fast path. The caller holds mu; writeSlow releases
// it. appended reports whether all lines are in slabs, except those too large.
func (w *Writer) writeSlow(p []byte, c class, r rank) (n int, appended bool, err error) {
	if w.closed {
		return 0, false, w.rejectUnlock(p)
	}
	pl := appending{rest: p, class: c, rank: r}
	appended = w.appendLocked(&pl)
	if !appended {
		if d := w.timeoutLocked(); d != 0 {
			return w.wait(p, pl, d)
		}
		w.dropLocked(full, c, pl.rest)
		w.fullLocked()
		w.polling = false
	}
	w.wakeUnlock()
	n, err = pl.result(len(p), w.opts.MaxLine)
	return n, appended, err
}

// trySlow is TryWriteLevel without the fast path. The caller holds mu; trySlow
// releases it.
func (w *Writer) trySlow(p []byte, c class) error {
	if w.closed {
		return w.rejectUnlock(p)
	}
	pl := appending{rest: p, class: c, rank: w.rankLocked(c)}
	one := len(p) == 0 || bytes.IndexByte(p, '\n') == len(p)-1
	appended := one && w.appendLocked(&pl)
	err := w.refusalLocked(false)
	w.wakeUnlock()
	if appended {
		_, err = pl.result(len(p), w.opts.MaxLine)
	}
	return err
}

// refusalLocked returns the error of TryWriteLevel for lines that find no room, or that
// WriteLevel would write through.
func (w *Writer) refusalLocked(through bool) error {
	if !through && w.timeoutLocked() == 0 {
		return line.ErrFull
	}
	return line.ErrWouldWait
}

// rejectUnlock counts the lines of p, which came after Close.
func (w *Writer) rejectUnlock(p []byte) error {
	w.tally.Rejected += line.Count(p)
	w.mu.Unlock()
	return os.ErrClosed
}

// timeoutLocked returns how long a call may wait for room.
func (w *Writer) timeoutLocked() time.Duration {
	switch {
	case w.opts.Full == Block:
		return forever
	case w.opts.Full == Drop || w.flight.timedOut:
		return 0
	}
	return w.opts.MaxWait
}

// fullLocked notes that a line found no room.
func (w *Writer) fullLocked() {
	if w.waiters.full == 0 {
		w.waiters.full = w.age()
	}
}

// dropLocked counts the lines of p, which found no room, as dropped.
func (w *Writer) dropLocked(r reason, c class, p []byte) {
	n := line.Count(p)
	w.lostLocked(r, c, n)
	w.tally.noRoom += n
	w.tally.noRoomBytes += uint64(len(p))
	if len(p) > 0 && p[len(p)-1] != '\n' {
		w.tally.noRoomBytes++
	}
	w.filling.gap[r] += n
}

// result returns the results of a Write of size bytes that was appended.
func (pl *appending) result(size, limit int) (int, error) {
	if pl.tooLarge == 0 {
		return size, nil
	}
	return size - pl.left, fmt.Errorf("slab: write a line of %d bytes, MaxLine is %d: %w", pl.tooLarge, limit, line.ErrTooLarge)
}

// appendLocked copies lines of pl into slabs until none is left, or returns
// false when the next one needs a slab and may not have one.
func (w *Writer) appendLocked(pl *appending) bool {
	f := &w.filling
	for len(pl.rest) > 0 {
		if f.cur != nil && pl.rank >= f.rank && w.fillLocked(pl) {
			continue
		}
		first, size := firstLine(pl.rest)
		if size > w.opts.MaxLine {
			w.skipTooLargeLocked(pl, first, size)
			continue
		}
		s := w.acquireLocked(pl.rank)
		if s == nil {
			return false
		}
		w.tally.LineMax = max(w.tally.LineMax, size)
		if size > w.opts.SlabSize {
			s.data = make([]byte, size)
			s.data[size-1] = '\n'
			copy(s.data, first)
			s.lines = 1
			s.marks = append(s.marks, mark{0, pl.class})
			w.beginLineLocked(s)
			w.pushLocked(s)
			pl.rest = pl.rest[len(first):]
			continue
		}
		w.beginLocked(s)
		f.cur, w.buf, w.pos, w.lines, w.class, w.committed = s, s.own, 0, 0, unknown, s.committed
		w.openLocked()
	}
	return true
}

// skipTooLargeLocked leaves out the first line of pl.
func (w *Writer) skipTooLargeLocked(pl *appending, first []byte, size int) {
	w.dropLocked(tooLarge, pl.class, first)
	pl.left += len(first)
	pl.tooLarge = max(pl.tooLarge, size)
	pl.rest = pl.rest[len(first):]
}

// openLocked decides by the number of free slabs which lines the open slab is for, and
// opens it to the fast path if it is for all.
func (w *Writer) openLocked() {
	f := &w.filling
	if f.rank = f.rankOf(len(f.free)); f.rank != ordinary {
		return
	}
	if w.kept.mem != nil {
		w.kept.end = len(w.buf)
	} else {
		w.end = len(w.buf)
	}
}

// fillLocked copies as many whole lines of pl into the current slab as there
// is room for, and returns false if not even one fits.
func (w *Writer) fillLocked(pl *appending) bool {
	room := len(w.buf) - w.pos
	p := pl.rest
	n := len(p)
	bare := p[n-1] != '\n'
	if n > room || bare && n == room {
		bare = false // the last line does not go with the others
		n = bytes.LastIndexByte(p[:min(n, room)], '\n') + 1
		if n == 0 {
			return false
		}
	}
	if w.class != pl.class {
		w.setClassLocked(pl.class)
	}
	if w.kept.mem == nil || !w.putBothLocked(p[:n], bare) {
		w.put(p[:n], bare)
	}
	pl.rest = p[n:]
	return true
}

// acquireLocked seals the current slab and returns a free one. If none may be used it
// returns nil and leaves the current slab open: a shorter line may still fit.
func (w *Writer) acquireLocked(r rank) *slab {
	f := &w.filling
	n := len(f.free) - 1
	if n < f.keep[r] {
		return nil
	}
	w.sealLocked()
	s := f.free[n]
	f.free[n] = nil
	f.free = f.free[:n]
	f.minFree = min(f.minFree, n)
	s.gap, f.gap = f.gap, counts{}
	s.marks = s.marks[:0]
	s.taken = w.age()
	return s
}

// sealLocked queues the current slab, if there is one.
func (w *Writer) sealLocked() {
	s := w.filling.cur
	if s == nil {
		return
	}
	s.data, s.lines = s.own[:w.pos], w.lines
	w.detachLocked()
	w.pushLocked(s)
}

// detachLocked leaves no slab open.
func (w *Writer) detachLocked() {
	w.filling.cur = nil
	w.buf, w.pos, w.end, w.lines, w.committed = nil, 0, 0, 0, nil
	w.kept.mem, w.kept.end = nil, 0
}

// pushLocked queues s, which is complete.
func (w *Writer) pushLocked(s *slab) {
	w.countSealedLocked(s)
	w.queue.push(s)
}

// countSealedLocked counts the lines of s, which are known now.
func (w *Writer) countSealedLocked(s *slab) {
	w.tally.sealed += uint64(s.lines)
	w.tally.sealedBytes += uint64(len(s.data))
	if w.kept.file != nil && !s.begun {
		w.kept.unkept += uint64(s.lines)
	}
}

// needWakeLocked reports whether the caller has to wake run: for a sealed slab; for
// the second one if run polls; for any line if run waits with its ticker stopped.
func (w *Writer) needWakeLocked() bool {
	enough := 1
	if w.polling {
		enough = 2
	}
	if !w.parked || w.queue.n < enough && !w.tickerOff {
		return false
	}
	w.parked, w.tickerOff = false, false
	return true
}

// wakeUnlock releases mu and wakes run if it has to be woken.
func (w *Writer) wakeUnlock() {
	wake := w.needWakeLocked()
	w.mu.Unlock()
	if wake {
		aside.Signal(w.wake)
	}
}

// wakeParkedUnlock releases mu, notifies served waiters, and wakes run if it is parked.
func (w *Writer) wakeParkedUnlock() {
	wake := w.parked
	w.parked, w.tickerOff = false, false
	w.unlockServed()
	if wake {
		aside.Signal(w.wake)
	}
}

// firstLine returns the first line of p, which is not empty, and the size it
// takes with its newline, which only a last line can lack.
func firstLine(p []byte) (first []byte, size int) {
	if i := bytes.IndexByte(p, '\n'); i >= 0 {
		return p[:i+1], i + 1
	}
	return p, len(p) + 1
}

var newline = []byte{'\n'}

// queue is a ring of the sealed slabs in order, guarded by Writer.mu. It has room for
// all slabs.
type queue struct {
	ring   []*slab
	first  int
	n      int
	pushed uint64 // since New
}

func (q *queue) push(s *slab) {
	q.ring[(q.first+q.n)%len(q.ring)] = s
	q.n++
	q.pushed++
}

func (q *queue) pop() *slab {
	s := q.ring[q.first]
	q.ring[q.first] = nil
	q.first = (q.first + 1) % len(q.ring)
	q.n--
	return s
}

// at returns the i-th slab from the front, 0 <= i < n.
func (q *queue) at(i int) *slab {
	return q.ring[(q.first+i)%len(q.ring)]
}
