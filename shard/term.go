package shard

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/rollway/rollway/internal/framed"
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
	since atomic.Int64  // when the first record came, by Writer.clock; 0 until known
	owner atomic.Int32  // index of the shard that it is or was current in
	buf   []byte
	mark  uint64 // a record that ends beyond sends the term off if another is free

	number uint64      // of the batch that a framed term becomes; set while it is sealed
	seed   framed.Seed // of number

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
	ok := w.takeLocked(s)
	w.mu.Unlock()
	w.wakeUp()
	return ok
}

// takeLocked makes a free term the current one of s, or w.full if there is none
// for it, and then returns false. Records that wait for s have their places in
// it before it is open to others.
func (w *Writer) takeLocked(s *shard) bool {
	for !w.closed && len(w.free) > 0 && w.mayTakeLocked(s) {
		last := len(w.free) - 1
		next := w.free[last]
		w.free = w.free[:last]
		next.owner.Store(w.indexOf(s))
		next.since.Store(0)
		next.done.Store(w.base)
		if w.framed {
			next.number = w.file.Numbers().Next()
			next.seed = framed.SeedOf(next.number)
		}
		next.stop.Store(0)
		next.queued = false
		if s.cur.Load() == w.full {
			w.relieved = w.clock(time.Now())
		}
		s.cur.Store(next) // sealed as yet, and known to be current by those who get a place
		used, all := w.grantLocked(s, next)
		if all {
			next.tail.Store(used)
			w.wakeFirstLocked()
			return true
		}
		// The next one in line does not fit: it gets the beginning of another
		// term, and nobody takes what is left of this one before it.
		next.stop.Store(used + 1)
		next.tail.Store(uint64(len(next.buf)) + 1)
		next.queued = true
		w.queue = append(w.queue, next)
		w.pushed++
	}
	s.cur.Store(w.full)
	w.wakeFirstLocked()
	return false
}

func (w *Writer) indexOf(s *shard) int32 {
	for i := range w.shards {
		if s == &w.shards[i] {
			return int32(i)
		}
	}
	return 0 // unreachable
}

func tooLarge(n uint64, size int) error {
	return fmt.Errorf("%w: it has %d bytes with what ends or frames it, a buffer %d", ErrTooLarge, n, size)
}
