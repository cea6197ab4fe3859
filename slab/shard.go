package slab

import (
	"bytes"
	"log/slog"
	"os"
	"sync/atomic"

	"github.com/rollway/rollway/internal/aside"
	"github.com/rollway/rollway/internal/goid"
)

// shard is the front half for some of the goroutines if there are several shards. It
// has no slab before its first line, or after its slab was queued.
type shard struct {
	cur atomic.Pointer[term] // stored by holders of Writer.mu; Writer.none if there is no slab

	// A reserved cur stays sealed; lines that may use it get room in it under mu.
	rank rank // of the lines that cur is for; guarded by mu
	used int  // bytes of a reserved cur; guarded by mu

	_ [128 - 8 - 8 - 8]byte // keeps shards off each other's cache lines
}

// writeSharded is Write and WriteLevel with several shards. appended is as in
// writeSlow.
func (w *Writer) writeSharded(p []byte, c class) (n int, appended bool, err error) {
	if len(p) == 0 {
		return 0, true, nil
	}
	s := w.shard()
	if w.tryAppend(s, p) {
		return len(p), true, nil
	}
	return w.writeShardedSlow(s, p, c)
}

// shard returns the shard of the calling goroutine.
func (w *Writer) shard() *shard { return &w.shards[goid.Hash(uint32(len(w.shards)))] }

// tryAppend copies p to the slab of s, if there is room for all of it.
func (w *Writer) tryAppend(s *shard, p []byte) bool {
	size := sizeOf(p)
	t := s.cur.Load()
	if !t.fits(size) {
		return false
	}
	start, ok := t.reserve(size)
	if ok {
		w.putSharded(s, t, start, p)
	}
	return ok
}

// putSharded copies p to start in t, which was the current term of s. Without a lock
// that may have changed before the room was reserved.
func (w *Writer) putSharded(s *shard, t *term, start int, p []byte) {
	t.put(start, p)
	if s.cur.Load() != t {
		w.queueStale(t)
	}
}

// sizeOf returns how many bytes p takes with the newline that may be missing.
func sizeOf(p []byte) int {
	if p[len(p)-1] != '\n' {
		return len(p) + 1
	}
	return len(p)
}

// writeShardedSlow is writeSharded for lines that need one slab or several.
func (w *Writer) writeShardedSlow(s *shard, p []byte, c class) (n int, appended bool, err error) {
	pl := appending{rest: p, class: c}
	for appended = true; appended && len(pl.rest) > 0; {
		if appended, err = w.appendSharded(s, &pl); err != nil {
			return len(p) - pl.left - len(pl.rest), false, err
		}
	}
	n, err = pl.result(len(p), w.opts.MaxLine)
	return n, appended, err
}

// trySharded is TryWriteLevel with several shards.
func (w *Writer) trySharded(level slog.Level, p []byte, c class) error {
	s := w.shard()
	if len(p) == 0 || level < w.through && w.tryAppend(s, p) {
		return nil
	}
	pl := appending{rest: p, class: c, try: true, through: level >= w.through}
	if appended, err := w.appendSharded(s, &pl); !appended {
		return err
	}
	_, err := pl.result(len(p), w.opts.MaxLine)
	return err
}

// appendSharded copies as many lines of pl as fit one slab, for which it may wait,
// or skips one that is too large. It returns false if the lines were dropped, or with
// an error if they are left to the caller. For TryWriteLevel it takes one whole line.
func (w *Writer) appendSharded(s *shard, pl *appending) (appended bool, err error) {
	piece, size := pl.piece(w.opts.SlabSize)
	w.mu.Lock()
	if w.closed {
		return false, w.rejectUnlock(pl.rest)
	}
	if pl.class != unknown {
		pl.rank = w.rankLocked(pl.class)
	}
	through := pl.through && !w.flight.timedOut
	if pl.try && (through || bytes.IndexByte(pl.rest, '\n') != len(pl.rest)-1) {
		err := w.refusalLocked(through)
		w.wakeUnlock()
		return false, err
	}
	if size > w.opts.SlabSize {
		w.skipTooLargeLocked(pl, piece, size)
		w.wakeUnlock()
		return true, nil
	}
	if t, start := w.findLocked(s, size, pl.rank); t != nil {
		wake := w.needWakeLocked()
		w.mu.Unlock()
		t.put(start, piece)
		if wake {
			aside.Signal(w.wake)
		}
		pl.rest = pl.rest[len(piece):]
		return true, nil
	}

	w.filling.short = true
	if pl.try {
		err := w.refusalLocked(false)
		w.wakeUnlock()
		return false, err
	}
	timeout := w.timeoutLocked()
	if timeout > 0 { // of the call, not of each of its waits
		if pl.until == 0 {
			pl.until = w.age() + timeout
		}
		timeout = max(pl.until-w.age(), 0)
	}
	if timeout == 0 {
		w.dropLocked(full, pl.class, pl.rest)
		w.fullLocked()
		w.polling = false
		w.wakeUnlock()
		return false, nil
	}
	if s.rank <= pl.rank {
		w.retireLocked(s) // no later line may overtake this one
	}
	wt := w.waiters.get()
	wt.appending, wt.shard, wt.size = *pl, s, size
	w.enqueueUnlock(wt)
	appended = w.await(wt, timeout)
	if appended {
		wt.term.put(wt.start, piece)
		pl.rest = pl.rest[len(piece):]
	} else if wt.closed {
		err = os.ErrClosed
	}
	w.waiters.put(wt)
	return appended, err
}

// piece returns as many lines at the front of pl as fit a slab of that size, or
// one that does not, and how many bytes they take.
func (pl *appending) piece(slab int) (lines []byte, size int) {
	if size := sizeOf(pl.rest); size <= slab {
		return pl.rest, size
	}
	if n := bytes.LastIndexByte(pl.rest[:min(len(pl.rest), slab)], '\n') + 1; n > 0 {
		return pl.rest[:n], n
	}
	return firstLine(pl.rest)
}

// findLocked reserves size bytes in the slab of s, or in another slab that s gets. It
// returns nil if there is none.
func (w *Writer) findLocked(s *shard, size int, r rank) (t *term, start int) {
	t = s.cur.Load()
	if s.rank > ordinary { // perhaps another slab is reserved by now
		if s.rank = min(s.rank, w.filling.rankOf(len(w.filling.free))); s.rank == ordinary {
			t.tail.Store(uint64(s.used))
		}
	}
	switch {
	case r < s.rank:
		return nil, 0
	case s.rank > ordinary && s.used+size <= len(t.buf):
		start = s.used
		s.used += size
		return t, start
	case s.rank == ordinary && t.fits(size):
		if start, ok := t.reserve(size); ok {
			return t, start
		}
	}
	if len(w.filling.free) <= w.filling.keep[r] {
		return nil, 0 // the slab stays open: a shorter line may still fit
	}
	w.retireLocked(s)
	taken := w.acquireLocked(r)
	w.currentLocked(s, taken.term, size)
	return taken.term, 0
}

// currentLocked makes t, whose first used bytes are reserved, the current term of s,
// which has none.
func (w *Writer) currentLocked(s *shard, t *term, used int) {
	f := &w.filling
	f.open++
	t.begin(s)
	s.rank, s.used = f.rankOf(len(f.free)), used
	s.cur.Store(t) // before it is open, so that every line in it finds it current
	if s.rank == ordinary {
		t.tail.Store(uint64(used))
	}
}

// retireLocked seals and queues the slab of s, if there is one.
func (w *Writer) retireLocked(s *shard) {
	t := s.cur.Load()
	if t == &w.none {
		return
	}
	if s.rank == ordinary {
		t.seal()
	} else {
		t.stop.Store(uint64(s.used) + 1)
		s.rank = ordinary
	}
	w.filling.open--
	s.cur.Store(&w.none)
	w.queue.push(&t.slab)
}

// retireDueLocked is called by run between two slabs, after a tick that it was too busy
// to wait for: lines in a quiet shard do not wait until busy shards pause. Slabs stay
// open to be filled while the destination fails, or while no other slab is free and no
// line lacks one.
func (w *Writer) retireDueLocked() {
	f := &w.filling
	if f.open == 0 || w.failing() {
		return
	}
	short := f.short
	f.short = w.waiters.oldest() > 0
	spare := len(f.free) - f.keep[ordinary]
	for range w.shards {
		s := &w.shards[w.io.turn]
		if s.cur.Load() != &w.none {
			if spare <= 0 && !short {
				return
			}
			w.retireLocked(s)
			spare--
		}
		w.io.turn = (w.io.turn + 1) % len(w.shards)
	}
}

// queueStale queues t if it is the current term of its owner.
func (w *Writer) queueStale(t *term) {
	w.mu.Lock()
	if t.owner.cur.Load() == t {
		w.retireLocked(t.owner)
	}
	w.wakeUnlock()
}

// settleLocked sets the data of a queued slab once all writers have copied.
func (w *Writer) settleLocked(s *slab) {
	if s.data != nil {
		return
	}
	t := s.term
	end, _ := t.end()
	lines, _ := t.filled()
	s.data, s.lines = t.buf[:end], int(lines)
	w.countSealedLocked(s)
}

// fillingLocked returns how many lines and bytes are in slabs that are not
// settled yet.
func (w *Writer) fillingLocked() (lines, bytes uint64) {
	lines, bytes = uint64(w.lines), uint64(w.pos)
	if len(w.shards) == 0 {
		return lines, bytes
	}
	add := func(t *term) {
		l, b := t.filled()
		lines, bytes = lines+l, bytes+b
	}
	for i := range w.shards {
		add(w.shards[i].cur.Load())
	}
	for i := range w.queue.n {
		if s := w.queue.at(i); s.data == nil {
			add(s.term)
		}
	}
	return lines, bytes
}

// serveShardedLocked gives free slabs to the shards that calls wait for, first come
// first served, and room in each slab to all calls that wait for its shard.
func (w *Writer) serveShardedLocked() {
	for r := range w.waiters.of {
		list := &w.waiters.of[vital-rank(r)]
		for list.head != nil {
			s := w.acquireLocked(vital - rank(r))
			if s == nil {
				break
			}
			w.grantLocked(list.head.shard, s.term)
		}
	}
}

// grantLocked gives t to s, and room in it to the waiters of s, in their order. If not
// all fit, t is queued at once: the next waiter gets the beginning of another slab, and
// no later line takes the rest of this one before it.
func (w *Writer) grantLocked(s *shard, t *term) {
	w.retireLocked(s)
	used, fits := 0, true
	for r, lowest := int(vital), int(w.filling.rankOf(len(w.filling.free))); r >= lowest; r-- {
		list := &w.waiters.of[r]
		for wt := list.head; fits && wt != nil; {
			next := wt.next
			switch {
			case wt.shard != s:
			case used+wt.size > len(t.buf):
				fits = false
			default:
				wt.term, wt.start = t, used
				used += wt.size
				w.waiters.serve(wt)
			}
			wt = next
		}
	}
	if fits {
		w.currentLocked(s, t, used)
		return
	}
	t.begin(s)
	t.stop.Store(uint64(used) + 1)
	w.queue.push(&t.slab)
}
