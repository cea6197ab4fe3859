package slab

import (
	"bytes"
	"fmt"
	"os"

	"github.com/rollway/rollway/internal/linecount"
)

// placing is one Write on its way into slabs.
type placing struct {
	rest     []byte // not yet placed
	class    class
	urgent   bool // may use the reserve
	left     int  // bytes of the lines left out because they are too large
	tooLarge int  // size of the longest of them, newline included
}

// writeSlow is Write for all cases but the common one. It is entered with mu
// held and leaves with it released. placed reports whether all lines but those
// that are too large have a place in a slab.
func (w *Writer) writeSlow(p []byte, c class, urgent bool) (n int, placed bool, err error) {
	if w.closed {
		w.tally.rejected += linecount.Of(p)
		w.mu.Unlock()
		return 0, false, os.ErrClosed
	}
	pl := placing{rest: p, class: c, urgent: urgent}
	placed = w.placeLocked(&pl)
	if !placed {
		if d := w.opts.patience(c); d != 0 {
			return w.wait(p, pl, d)
		}
		w.dropLocked(bufferFull, c, pl.rest)
		w.napping = false
	}
	wake := w.needWakeLocked()
	w.mu.Unlock()
	if wake {
		w.wakeUp()
	}
	n, err = pl.result(len(p), w.opts.OversizeLimit)
	return n, placed, err
}

// dropLocked counts the lines of p, which have no place, as dropped.
func (w *Writer) dropLocked(r reason, c class, p []byte) {
	n := linecount.Of(p)
	w.tally.dropped[c][r] += n
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
	return size - pl.left, fmt.Errorf("slab: write a line of %d bytes, OversizeLimit is %d: %w", pl.tooLarge, limit, ErrTooLarge)
}

// placeLocked copies lines of pl into slabs until none is left, or returns
// false when the next one needs a slab and may have none.
func (w *Writer) placeLocked(pl *placing) bool {
	f := &w.filling
	for len(pl.rest) > 0 {
		if f.cur != nil && (pl.urgent || !f.kept) && w.fillLocked(pl) {
			continue
		}
		line, size := firstLine(pl.rest)
		if size > w.opts.OversizeLimit {
			w.dropLocked(tooLarge, pl.class, line)
			pl.left += len(line)
			pl.tooLarge = max(pl.tooLarge, size)
			pl.rest = pl.rest[len(line):]
			continue
		}
		s := w.takeLocked(pl.urgent)
		if s == nil {
			return false
		}
		w.tally.lineMax = max(w.tally.lineMax, size)
		if size > w.opts.SlabSize {
			s.data = make([]byte, size)
			s.data[size-1] = '\n'
			copy(s.data, line)
			s.lines = 1
			s.marks = append(s.marks, mark{0, pl.class})
			w.beginLineLocked(s)
			w.pushLocked(s)
			pl.rest = pl.rest[len(line):]
			continue
		}
		w.beginLocked(s)
		f.cur, w.buf, w.pos, w.lines, w.class, w.committed = s, s.own, 0, 0, unknown, s.committed
		f.kept = len(f.free) < f.reserve
		if !f.kept {
			w.end = len(w.buf)
		}
	}
	return true
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
	w.put(p[:n], bare)
	pl.rest = p[n:]
	return true
}

// takeLocked seals the current slab and returns a free one, or returns nil and
// leaves the current slab open, which may still have room for a shorter line.
func (w *Writer) takeLocked(urgent bool) *slab {
	f := &w.filling
	keep := f.reserve
	if urgent {
		keep = 0
	}
	n := len(f.free) - 1
	if n < keep {
		return nil
	}
	w.sealLocked()
	s := f.free[n]
	f.free[n] = nil
	f.free = f.free[:n]
	f.minFree = min(f.minFree, n)
	s.gap, f.gap = f.gap, counts{}
	s.marks = s.marks[:0]
	return s
}

// sealLocked queues the current slab, if there is one.
func (w *Writer) sealLocked() {
	s := w.filling.cur
	if s == nil {
		return
	}
	s.data, s.lines = w.buf[:w.pos], w.lines
	w.filling.cur, w.filling.kept = nil, false
	w.buf, w.pos, w.end, w.lines = nil, 0, 0, 0
	w.pushLocked(s)
}

// pushLocked queues s, which is complete.
func (w *Writer) pushLocked(s *slab) {
	w.tally.sealed += uint64(s.lines)
	w.tally.sealedBytes += uint64(len(s.data))
	w.queue.push(s)
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

func (w *Writer) wakeUp() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// firstLine returns the first line of p, which is not empty, and the size it
// takes with its newline, which only a last line can lack.
func firstLine(p []byte) (line []byte, size int) {
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
