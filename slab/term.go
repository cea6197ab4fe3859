package slab

import (
	"runtime"
	"sync/atomic"

	"github.com/rollway/rollway/internal/ntcopy"
)

// term is the part of a slab that only several shards need: many goroutines copy into
// it at the same time, without a lock.
//
//   - tail is how many bytes were requested. A writer that adds n to it owns the
//     n bytes before the sum, if the sum is not beyond the end of buf. A tail
//     beyond the end means sealed: no more room is given. The one writer whose
//     addition crosses the end stores in stop where the bytes end.
//   - done is how many bytes have been copied, and in its upper half how many
//     lines. A writer copies before it adds to done: once done equals the end, all
//     bytes are there.
//   - A term that is not the current one of a shard is sealed, so that a writer
//     that read its address earlier gets no room. If that writer finds the term
//     open again, it may belong to another shard. The lines stay in it, and the
//     term is queued before the writer returns; see Writer.queueStale.
//   - A shard's term is queued before the shard gets another one, and the queue
//     is written in order. So the lines of one goroutine keep their order.
type term struct {
	tail atomic.Uint64
	_    [56]byte // writers read buf while others add to tail
	done atomic.Uint64
	_    [56]byte

	buf   []byte        // slab.own; read-only
	stop  atomic.Uint64 // 1 + where the bytes end; 0 until known
	owner *shard        // the last to have it; guarded by Writer.mu
	slab  slab
}

// newTerms makes slabs of their memory, sealed.
func newTerms(memory [][]byte) []*slab {
	terms := make([]term, len(memory))
	slabs := make([]*slab, len(memory))
	for i := range terms {
		t := &terms[i]
		t.buf = memory[i]
		t.tail.Store(uint64(len(t.buf)) + 1)
		t.slab.term, t.slab.own = t, t.buf
		t.slab.committed = &t.slab.heap
		slabs[i] = &t.slab
	}
	return slabs
}

// begin makes t, which is free, ready for s.
func (t *term) begin(s *shard) {
	t.owner = s
	t.done.Store(0)
	t.stop.Store(0)
}

// fits reports whether there is room for n bytes. It is asked before reserve, so that
// tail stops growing in a sealed term, and a term too small for a line stays open for
// shorter ones.
func (t *term) fits(n int) bool { return t.tail.Load()+uint64(n) <= uint64(len(t.buf)) }

// reserve returns where n bytes, more than 0, may be put. If the room that fits
// reported is gone, it seals the term.
func (t *term) reserve(n int) (start int, ok bool) {
	end, size := t.tail.Add(uint64(n)), uint64(len(t.buf))
	if end <= size {
		return int(end) - n, true
	}
	if before := end - uint64(n); before <= size {
		t.stop.Store(before + 1)
	}
	return 0, false
}

// seal ends the reservations.
func (t *term) seal() {
	if t.fits(0) {
		t.reserve(len(t.buf) + 1)
	}
}

// put copies lines to start, where they have room reserved, and adds a missing last
// newline.
func (t *term) put(start int, p []byte) {
	lines := ntcopy.Lines(t.buf[start:], p)
	n := len(p)
	if p[n-1] != '\n' {
		t.buf[start+n] = '\n'
		n++
		lines++
	}
	t.done.Add(uint64(lines)<<32 | uint64(n))
}

// filled returns how many lines and bytes have been copied.
func (t *term) filled() (lines, bytes uint64) {
	done := t.done.Load()
	return done >> 32, done & (1<<32 - 1)
}

// end returns where the bytes end, and whether all of them have been copied.
func (t *term) end() (end int, copied bool) {
	stop := t.stop.Load()
	_, n := t.filled()
	return int(stop) - 1, stop > 0 && n == stop-1
}

// await waits until all writers have copied. The term is sealed.
func (t *term) await() {
	for i := 0; ; i++ {
		if _, copied := t.end(); copied {
			return
		}
		if i < 100 || !shortSleep(i-100) {
			runtime.Gosched()
		}
	}
}
