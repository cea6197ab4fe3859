package shard

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"time"
)

// A term is a buffer on its way round: free, current, sealed (queued) or in
// flight. Its invariants:
//
//   - tail is how many bytes were asked for. A writer that adds n to it owns the
//     n bytes before the sum if that is not beyond the end of buf. A tail beyond
//     the end means sealed: nobody gets a place. Whoever's addition takes it
//     beyond is the only one to see both sides, and stores where the bytes end.
//   - done is how many bytes have been copied, and in its upper half how many
//     records. Each copy is before its addition to done, so whoever finds done
//     equal to the end has all the bytes.
//   - A free term stays sealed, so that a writer who read its address long ago
//     bounces off. If such a writer finds it open again it may have become
//     another shard's: the record then is in it for good, and it is sent off
//     before that writer goes on; see Writer.written.
//   - A term is queued by a holder of its owner's mu, before that shard gets
//     another. So the terms that one goroutine has written to are queued in
//     order, and the queue is written in order.
type term struct {
	tail atomic.Uint64
	_    [56]byte
	done atomic.Uint64 // records<<32 | bytes
	_    [56]byte

	stop  atomic.Uint64 // 1 + where the bytes end; 0 until known
	since atomic.Int64  // when the first record came, in Unix ns; 0 until known
	owner atomic.Int32  // index of the shard that it is or was current in
	buf   []byte
	mark  uint64 // a record that ends beyond sends the term off if another is free

	queued  bool   // guarded by the owner's mu
	counted uint64 // guarded by Writer.mu; records written or given up
}

// sealedTerm returns a term that is free.
func sealedTerm(buf []byte) *term {
	t := &term{buf: buf, mark: uint64(len(buf)) / 10 * 9, queued: true}
	t.tail.Store(uint64(len(buf)) + 1)
	return t
}

// open reports whether it makes sense to reserve. It keeps tail from growing
// for ever in a term that is sealed.
func (t *term) open() bool { return t.tail.Load() <= uint64(len(t.buf)) }

// reserve returns where n bytes, more than 0, may be put. It seals the term if
// there is no room.
func (t *term) reserve(n uint64) (start uint64, ok bool) {
	end, size := t.tail.Add(n), uint64(len(t.buf))
	if end <= size {
		return end - n, true
	}
	if end-n <= size {
		t.stop.Store(end - n + 1)
	}
	return 0, false
}

func (t *term) commit(n, records uint64) { t.done.Add(records<<32 | n) }

// seal makes sure that nobody gets a place any more.
func (t *term) seal() {
	if t.open() {
		t.reserve(uint64(len(t.buf)) + 1)
	}
}

// records returns how many have been copied.
func (t *term) records() uint64 { return t.done.Load() >> 32 }

// used returns how many bytes were given away.
func (t *term) used() uint64 {
	if stop := t.stop.Load(); stop > 0 {
		return stop - 1
	}
	return min(t.tail.Load(), uint64(len(t.buf)))
}

// data waits until all writers have copied, and returns their bytes. The term
// is sealed.
func (t *term) data() []byte {
	for i := 0; ; i++ {
		if stop := t.stop.Load(); stop > 0 && t.done.Load()&0xFFFFFFFF == stop-1 {
			return t.buf[:stop-1]
		}
		if i < 100 {
			runtime.Gosched()
		} else {
			time.Sleep(20 * time.Microsecond)
		}
	}
}

// rotate queues the shard's current term if it is sealed, and gives the shard
// another. It returns false if there is none.
func (w *Writer) rotate(s *shard) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.cur.Load()
	if t == nil || t.open() {
		return true // closed, or somebody else was faster
	}
	return w.rotateLocked(s, t)
}

// sendOff seals t and queues it, if it is still the current term of its owner
// s. If it is not, it has been queued.
func (w *Writer) sendOff(s *shard, t *term) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cur.Load() == t {
		t.seal()
		w.rotateLocked(s, t)
	}
}

// rotateLocked queues t, the sealed current term of s, and replaces it.
func (w *Writer) rotateLocked(s *shard, t *term) bool {
	for t != w.full && t.stop.Load() == 0 {
		runtime.Gosched() // whoever sealed it is about to store it
	}
	w.mu.Lock()
	if !t.queued {
		t.queued = true
		w.queue = append(w.queue, t)
		w.pushed++
	}
	next := w.full
	if n := len(w.free); n > 0 && !w.closed {
		next, w.free = w.free[n-1], w.free[:n-1]
	}
	w.mu.Unlock()
	w.wakeUp()
	if next != w.full {
		next.owner.Store(w.indexOf(s))
		next.since.Store(0)
		next.stop.Store(0)
		next.queued = false
		next.tail.Store(0)
	}
	s.cur.Store(next)
	return next != w.full
}

func (w *Writer) indexOf(s *shard) int32 {
	for i := range w.shards {
		if s == &w.shards[i] {
			return int32(i)
		}
	}
	return 0 // unreachable
}

// makeRoom gets s another term. Where there is none it does as Options.Full
// says, and returns the error for records that have no place.
func (w *Writer) makeRoom(s *shard, records uint64, until *time.Time) error {
	if w.rotate(s) {
		return nil
	}
	if w.opts.Full == Block {
		return w.await(s, records, until)
	}
	w.mu.Lock()
	closed := w.closed
	w.mu.Unlock()
	if closed {
		w.drops.rejected.Add(records)
		return os.ErrClosed
	}
	w.drops.full.Add(records)
	return ErrBufferFull
}

// await waits until s has another term, or until *until, which it sets if this
// is the call's first wait.
func (w *Writer) await(s *shard, records uint64, until *time.Time) error {
	var expired <-chan time.Time
	if w.opts.BlockTimeout > 0 {
		if until.IsZero() {
			*until = time.Now().Add(w.opts.BlockTimeout)
		}
		timer := time.NewTimer(time.Until(*until))
		defer timer.Stop()
		expired = timer.C
	}
	freed := make(chan struct{}, 1)
	defer w.stopWaiting(freed)
	for {
		w.mu.Lock()
		closed, spare := w.closed, len(w.free) > 0
		if !closed && !spare {
			w.waiters = append(w.waiters, freed)
		}
		w.mu.Unlock()
		if closed {
			w.drops.rejected.Add(records)
			return os.ErrClosed
		}
		if spare && w.rotate(s) {
			return nil
		}
		if spare {
			continue // somebody else took it
		}
		select {
		case <-freed:
		case <-expired:
			w.drops.full.Add(records)
			return ErrBufferFull
		}
	}
}

// stopWaiting takes freed off the list, if it is there.
func (w *Writer) stopWaiting(freed chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiters = slices.DeleteFunc(w.waiters, func(c chan struct{}) bool { return c == freed })
}

// releaseLocked frees t, which has been dealt with, and lets writers go on.
func (w *Writer) releaseLocked(t *term) {
	t.done.Store(0)
	t.counted = 0
	w.free = append(w.free, t)
	w.flushed++
	for _, freed := range w.waiters {
		select {
		case freed <- struct{}{}:
		default: // it has gone
		}
	}
	w.waiters = w.waiters[:0]
}

func tooLarge(n uint64, size int) error {
	return fmt.Errorf("%w: it has %d bytes with its newline, a buffer %d", ErrTooLarge, n, size)
}
