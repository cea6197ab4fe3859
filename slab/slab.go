// Package slab decouples those who write lines from where the lines go. A
// Writer copies whole lines into slabs that were allocated once, and one
// goroutine passes each slab on in a single Write, in order. A producer pays
// for a lock and a copy; it never waits for the destination while a slab is
// free.
//
// It works with any logger that takes an io.Writer, and with any destination that
// is one: a file, a connection, standard output.
package slab

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"github.com/rollway/rollway/internal/aside"
	"github.com/rollway/rollway/internal/direct"
	"github.com/rollway/rollway/internal/slabfile"
)

// Writer is an io.WriteCloser that takes whole lines and hands them, many at a
// time, to a destination. All methods are safe for concurrent use. Whoever
// calls New calls Close or Shutdown; until then one goroutine runs.
//
//   - A line travels whole: it is never torn and never mixed with another. It
//     is written to the destination in the same order in which Write took it,
//     so lines of one producer keep their order, always.
//   - The destination's Write, Sync and Close are never called at the same
//     time. Each byte is handed over until the destination has reported it as
//     taken, and then never again.
//   - A destination that fails is tried again from the first byte it did not
//     take, for ever unless Options.GiveUp is set: after 10 ms, then after twice
//     the wait before, up to 5 s, each wait shortened at random by up to a half.
//     A write that made progress is repeated at once and starts the waits anew.
//     An error that implements RetryAfter() time.Duration is waited for at least
//     that long. One that panics or calls runtime.Goexit has failed and is
//     assumed to have taken nothing.
//   - A destination that begins a new stream by itself, as after a reconnect,
//     reports whole lines only, as remote.Writer does. Then the new stream begins
//     with the first line that is not known to be whole.
//   - When every slab is full because the destination stalls, Options.Full says
//     what becomes of new lines. Stats never waits.
//   - With Options.Failover, what a failing or stalling destination does not
//     take goes to the other, from the start of the first line not known to be
//     whole, until the first one works again.
//   - Each line is accounted for: Accepted = Written + Dropped + Pending holds
//     in every Stats, to the line. Dropped lines are announced in the stream by
//     a line of their own, in the Write of the first slab begun after the loss,
//     or by itself once no lines come.
type Writer struct {
	opened

	through slog.Level // read-only: Options.WriteThrough
	opts    Options    // read-only
	born    time.Time  // read-only

	filling filling
	queue   queue
	flight  flight
	tally   tally
	io      ioState // owned by run

	teller    aside.Teller
	telling   sync.Mutex  // held by tellLosses
	watch     *time.Timer // runs tellStall
	lossTimer *time.Timer // runs tellLosses

	barriers []*barrier // guarded by mu; in the order of their targets

	// wake holds at most one token; it is sent by whoever found parked set and
	// cleared it.
	wake    chan struct{}
	parked  bool // guarded by mu; run waits for wake
	dozing  bool // guarded by mu; run waits without a ticker, parked is set
	napping bool // guarded by mu; while parked is set, run looks by itself before long
	waiters waiters

	shards []shard // read-only: none, or several
	none   term    // sealed for ever: the current term of a shard without a slab

	kept keeping

	closed    bool          // guarded by mu; no more lines are taken
	abandoned bool          // guarded by mu; the deadline of Shutdown has passed
	stopped   bool          // guarded by mu; run has left its loop
	closing   chan struct{} // closed when closed is set
	abandon   chan struct{} // closed when abandoned is set
	finished  chan struct{} // closed when closeErr is set
	left      chan struct{} // closed when the file of Options.Persist is
	closeErr  error         // read-only after finished is closed
	leaves    bool          // read-only after finished is closed: the deadline passed outside any call, left follows soon
}

// opened is the lock and the slab being filled, all that a Write needs to look
// at while it finds room between pos and end. So end is 0 whenever it must look
// at more: no slab is open, the open one is in a file or kept for important lines,
// there are several shards, or the Writer is closed.
type opened struct {
	mu        lock  // held while nothing is waited for but the disk of Options.Persist
	class     class // of a line written at pos, unless a mark is made
	pos       int
	end       int     // len(buf) or 0
	lines     int     // in buf[:pos]
	committed *uint64 // of cur
	buf       []byte  // cur.own, nil if cur is nil
}

// A slab is free, filling, sealed (queued) or in flight (with run). While it fills
// its memory is written by holders of mu, or with several shards by those who have
// a place in term. Sealed and in flight it is only read: by run, by calls of the
// destinations, also one that was left behind, and by the keeper.
type slab struct {
	own   []byte // SlabSize bytes, for ever
	data  []byte // own[:n], or the memory of one oversized line; nil if free, filling, or not settled (see copiedLocked)
	lines int    // in data
	marks []mark // of the levels of the lines in data, in order; none with several shards
	gap   counts // lines dropped after the slab before and not yet announced

	// How much of the slab is whole lines: in the file, for the next process, or
	// else in heap, where nobody looks.
	committed *uint64
	heap      uint64
	index     int // in the file
	fileState

	taken time.Duration // when its first line came, as Writer.age has it; guarded by mu

	pos  uint64 // number of the first byte among all that was ever handed over; 0 until then
	held int    // by so many calls of a destination's Write; guarded by mu
	over bool   // every line of it is accounted for, and it is held; guarded by mu

	term *term // nil if there is one shard
}

// filling is the state of the producers' side, guarded by mu.
type filling struct {
	cur     *slab      // holds at least one line; nil until the next line comes
	rank    rank       // of the lines that cur is for: this and above
	free    []*slab    // a stack, so that the warmest memory is used first
	keep    [ranks]int // free slabs that lines of a rank may not take
	gap     counts     // to be announced before the next slab
	minFree int        // lowest len(free) so far

	// With several shards, which have slabs in the place of cur:
	open  int  // shards that have one
	short bool // some line found none since run last looked; see retireDueLocked
}

// New starts a Writer in front of dst. The error names the option that is out
// of range; nothing runs then.
func New(dst io.Writer, o Options) (*Writer, error) {
	if dst == nil {
		return nil, errors.New("slab: the destination is nil")
	}
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	w := &Writer{
		opts:     o,
		born:     time.Now().Add(-1), // so that no age is 0
		through:  slog.Level(math.MaxInt),
		wake:     make(chan struct{}, 1),
		closing:  make(chan struct{}),
		abandon:  make(chan struct{}),
		finished: make(chan struct{}),
		left:     make(chan struct{}),
	}
	if o.WriteThrough != nil {
		w.through = o.WriteThrough.Level()
	}
	w.mu.alone = runtime.GOMAXPROCS(0) == 1
	w.queue.ring = make([]*slab, o.SlabCount)
	var slabs []*slab
	if o.Persist != "" {
		slabs, err = w.openFile(dst)
	} else {
		slabs, err = w.newSlabs(isVectored(dst))
	}
	if err != nil {
		return nil, err
	}
	for _, s := range slabs {
		if s.data == nil {
			w.filling.free = append(w.filling.free, s)
		}
	}
	w.filling.minFree = len(w.filling.free)
	w.io.outlets[0] = &outlet{w: dst, name: "destination"}
	if o.Failover != nil {
		w.io.outlets[1] = &outlet{w: o.Failover, name: "failover", second: true}
	}
	for _, o := range w.io.outlets {
		if o != nil && w.kept.file == nil { // of the lines of a file one slab at a time may be under way
			o.vectored = isVectored(o.w)
		}
	}
	w.io.ticker = time.NewTicker(o.FlushInterval)
	w.io.alarm = time.NewTimer(o.FlushInterval)
	w.io.alarm.Stop()
	w.teller.OnError = o.OnError
	if o.OnError == nil && dst != io.Writer(os.Stderr) && o.Failover != io.Writer(os.Stderr) {
		w.teller.OnError = aside.ToStderr
	}
	w.watch = stoppedTimer(w.tellStall)
	w.lossTimer = stoppedTimer(func() { w.tellLosses(false) })
	go w.run()
	if w.kept.file != nil {
		go w.keeper()
	}
	return w, nil
}

// newSlabs makes all slabs, and the shards. Large ones for a destination that takes
// buffers as they are lie where direct I/O can write from, outside of the heap.
func (w *Writer) newSlabs(vectored bool) ([]*slab, error) {
	o := &w.opts
	var memory [][]byte
	if vectored && o.SlabSize >= direct.InPlace {
		set, err := direct.NewMemorySet(o.SlabCount, o.SlabSize)
		if err != nil {
			return nil, fmt.Errorf("slab: option SlabSize: %w", err)
		}
		// Whoever looks at a slab has the Writer, a call that hangs included.
		runtime.AddCleanup(w, func(set *direct.MemorySet) { _ = set.Free() }, set)
		for i := range o.SlabCount {
			memory = append(memory, set.Bytes(i))
		}
	} else {
		memory = onHeap(o.SlabCount, o.SlabSize)
	}
	if o.Shards <= 1 {
		return slabsOf(memory), nil
	}
	w.none.tail.Store(1)
	w.shards = make([]shard, o.Shards)
	for i := range w.shards {
		w.shards[i].cur.Store(&w.none)
	}
	return newTerms(memory), nil
}

// onHeap allocates the memory of all slabs in one piece.
func onHeap(count, size int) [][]byte {
	whole := make([]byte, count*size)
	memory := make([][]byte, count)
	for i := range memory {
		lo, hi := i*size, (i+1)*size
		memory[i] = whole[lo:hi:hi]
	}
	return memory
}

// slabsOf makes slabs of their memory.
func slabsOf(memory [][]byte) []*slab {
	slabs := make([]*slab, len(memory))
	for i := range slabs {
		slabs[i] = &slab{own: memory[i], marks: make([]mark, 0, 16)}
		slabs[i].committed = &slabs[i].heap
	}
	return slabs
}

// Write takes p, one or more whole lines; a missing last newline is added. It
// copies p before it returns. More lines than fit one slab are spread over
// several, split between lines. Their level is unknown: they may not use the
// slabs that are reserved for important lines.
//
// When no slab is free, Options.Full says how long Write waits. Lines that found
// no room are counted as dropped, and Write returns len(p), nil. After Close it
// returns os.ErrClosed, also to calls that were waiting. A line longer than
// Options.MaxLine is left out, counted, and reported as an error that wraps
// line.ErrTooLarge; the other lines of p are taken. With an error, n is the
// length of the lines that were taken.
func (w *Writer) Write(p []byte) (n int, err error) {
	if len(w.shards) > 0 {
		n, _, err = w.writeSharded(p, unknown)
		return n, err
	}
	w.mu.Lock()
	if n := len(p); n > 0 && n <= w.end-w.pos && p[n-1] == '\n' {
		if w.class != unknown {
			w.turnLocked(unknown)
		}
		w.putUnlock(p)
		return n, nil
	}
	if w.kept.end > 0 && w.putKept(p, unknown) {
		return len(p), nil
	}
	n, _, err = w.writeSlow(p, unknown, ordinary)
	return n, err
}

// WriteLevel is Write for lines of one level, which may use the slabs that are
// reserved for it and are written through from Options.WriteThrough on. What is
// dropped is counted under the level.
func (w *Writer) WriteLevel(level slog.Level, p []byte) (n int, err error) {
	if level >= w.through {
		return w.writeThrough(level, p)
	}
	c := classOf(level)
	if len(w.shards) > 0 {
		n, _, err = w.writeSharded(p, c)
		return n, err
	}
	w.mu.Lock()
	if n := len(p); n > 0 && n <= w.end-w.pos && p[n-1] == '\n' {
		if w.class != c {
			w.turnLocked(c)
		}
		w.putUnlock(p)
		return n, nil
	}
	if w.kept.end > 0 && w.putKept(p, c) {
		return len(p), nil
	}
	n, _, err = w.writeSlow(p, c, w.rankLocked(c))
	return n, err
}

// put adds lines, for which there is room, to the open slab, and the newline that
// a bare last one lacks. If the slab is in a file too, its copy there comes before;
// committed is in the file, and the order of the copy and of that store is what keeps
// a line from being torn; see package slabfile. The store may fault, and then pos
// and lines are as before.
func (o *opened) put(p []byte, bare bool) {
	pos, lines := o.pos+copy(o.buf[o.pos:], p), o.lines+bytes.Count(p, newline)
	if bare {
		o.buf[pos] = '\n'
		pos++
		lines++
	}
	*o.committed = slabfile.Committed(pos, lines)
	o.pos, o.lines = pos, lines
}

// putUnlock is put, and gives the lock back.
func (o *opened) putUnlock(p []byte) {
	if hasPutLong && len(p) >= longPut {
		putLong(o, unsafe.SliceData(p), len(p))
		return
	}
	o.put(p, false)
	o.mu.Unlock()
}

// longPut is the least that putLong takes.
const longPut = 32
