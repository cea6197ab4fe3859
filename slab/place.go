package slab

import (
	"bytes"
	"fmt"
	"os"
	"time"

	"github.com/rollway/rollway/line"
)

// placing is one Write on its way into slabs.
type placing struct {
	rest     []byte // not yet placed
	class    class
	rank     rank
	left     int // bytes of the lines left out because they are too large
	tooLarge int // size of the longest of them, newline included

	until time.Duration // with several shards: when it stops to wait, as Writer.age has it, or 0
}

// writeSlow is Write for all cases but the common one. It is entered with mu
// held and leaves with it released. placed reports whether all lines but those
// that are too large have a place in a slab.
func (w *Writer) writeSlow(p []byte, c class, r rank) (n int, placed bool, err error) {
	if w.closed {
		return 0, false, w.rejectUnlock(p)
	}
	pl := placing{rest: p, class: c, rank: r}
	placed = w.placeLocked(&pl)
	if !placed {
		if d := w.patienceLocked(); d != 0 {
			return w.wait(p, pl, d)
		}
		w.dropLocked(full, c, pl.rest)
		w.fullLocked()
		w.napping = false
	}
	w.wakeUnlock()
	n, err = pl.result(len(p), w.opts.MaxLine)
	return n, placed, err
}

// trySlow is TryWriteLevel for all cases but the common one. It is entered with
// mu held and leaves with it released.
func (w *Writer) trySlow(p []byte, c class) error {
	if w.closed {
		return w.rejectUnlock(p)
	}
	pl := placing{rest: p, class: c, rank: w.rankLocked(c)}
	one := len(p) == 0 || bytes.IndexByte(p, '\n') == len(p)-1
	placed, patience := one && w.placeLocked(&pl), w.patienceLocked()
	w.wakeUnlock()
	switch {
	case !placed && patience == 0:
		return line.ErrFull
	case !placed:
		return line.ErrWouldWait
	}
	_, err := pl.result(len(p), w.opts.MaxLine)
	return err
}

// rejectUnlock counts the lines of p, which came after Close.
func (w *Writer) rejectUnlock(p []byte) error {
	w.tally.rejected += line.Count(p)
	w.mu.Unlock()
	return os.ErrClosed
}

// patienceLocked returns how long a call waits for room.
func (w *Writer) patienceLocked() time.Duration {
	switch {
	case w.opts.Full == Block:
		return forever
	case w.opts.Full == Drop || w.flight.vain:
		return 0
	}
	return w.opts.MaxWait
}

// fullLocked notes that a line has found no room.
func (w *Writer) fullLocked() {
	if w.waiters.full == 0 {
		w.waiters.full = w.age()
	}
}

// dropLocked counts the lines of p, which have no place, as dropped.
func (w *Writer) dropLocked(r reason, c class, p []byte) {
	n := line.Count(p)
	w.lostLocked(r, c, n)
	w.tally.unplaced += n
	w.tally.unplacedBytes += uint64(len(p))
	if len(p) > 0 && p[len(p)-1] != '\n' {
		w.tally.unplacedBytes++
	}
	w.filling.gap[r] += n
}

// result is what Write returns for a p of size bytes that was placed.
func (pl *placing) result(size, limit int) (int, error) {
	if pl.tooLarge == 0 {
		return size, nil
	}
	return size - pl.left, fmt.Errorf("slab: write a line of %d bytes, MaxLine is %d: %w", pl.tooLarge, limit, line.ErrTooLarge)
}

// placeLocked copies lines of pl into slabs until none is left, or returns
// false when the next one needs a slab and may have none.
func (w *Writer) placeLocked(pl *placing) bool {
	f := &w.filling
	for len(pl.rest) > 0 {
		if f.cur != nil && pl.rank >= f.rank && w.fillLocked(pl) {
			continue
		}
		first, size := firstLine(pl.rest)
		if size > w.opts.MaxLine {
			w.tooLargeLocked(pl, first, size)
			continue
		}
		s := w.takeLocked(pl.rank)
		if s == nil {
			return false
		}
		w.tally.lineMax = max(w.tally.lineMax, size)
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

// tooLargeLocked leaves out the first line of pl.
func (w *Writer) tooLargeLocked(pl *placing, first []byte, size int) {
	w.dropLocked(tooLarge, pl.class, first)
	pl.left += len(first)
	pl.tooLarge = max(pl.tooLarge, size)
	pl.rest = pl.rest[len(first):]
}

// openLocked says which lines the open slab is for, by how many slabs are free,
// and lets those of every level come into it by the short way.
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
func (w *Writer) fillLocked(pl *placing) bool {
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
		w.turnLocked(pl.class)
	}
	w.putLocked(p[:n], bare)
	pl.rest = p[n:]
	return true
}

// takeLocked seals the current slab and returns a free one, or returns nil and
// leaves the current slab open, which may still have room for a shorter line.
func (w *Writer) takeLocked(r rank) *slab {
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
	w.sealedLocked(s)
	w.queue.push(s)
}

// sealedLocked counts what is in s, of which that is known now.
func (w *Writer) sealedLocked(s *slab) {
	w.tally.sealed += uint64(s.lines)
	w.tally.sealedBytes += uint64(len(s.data))
	if w.kept.file != nil && !s.begun {
		w.kept.unkept += uint64(s.lines)
	}
}

// needWakeLocked reports whether the caller has to wake run: for a sealed slab,
// for the second one if run looks by itself, or, if run waits without a ticker,
// for anything.
func (w *Writer) needWakeLocked() bool {
	enough := 1
	if w.napping {
		enough = 2
	}
	if !w.parked || w.queue.n < enough && !w.dozing {
		return false
	}
	w.parked, w.dozing = false, false
	return true
}

// wakeUnlock releases mu and wakes run if it has to be woken.
func (w *Writer) wakeUnlock() {
	wake := w.needWakeLocked()
	w.mu.Unlock()
	if wake {
		w.wakeUp()
	}
}

func (w *Writer) wakeUp() {
	select {
	case w.wake <- struct{}{}:
	default:
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

// queue holds the sealed slabs in order, guarded by Writer.mu. Its ring has a
// place for every slab there is, so that a push always finds one.
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
