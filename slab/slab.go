// Package slab writes lines asynchronously. A Writer copies whole lines into slabs
// that were allocated once, and one goroutine passes each slab on in a single Write,
// in order. A producer pays for a lock and a copy; it never waits for the destination
// while a slab is free.
//
// It works with any logger that takes an io.Writer, and with any destination that
// is one: a file, a connection, standard output.
//
// The files in the order in which a line passes: slab.go, append.go and wait.go, or
// with several shards shard.go and term.go; then run.go, batch.go, destination.go,
// retry.go and failover.go; then barrier.go and close.go.
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
// time, to a destination. All methods are safe for concurrent use. The caller of
// New calls Close or Shutdown; until then one goroutine runs.
//
//   - A line travels whole: it is never torn and never mixed with another. Lines
//     are written in the order in which Write took them, so the lines of one
//     producer always keep their order.
//   - The destination's Write, Sync and Close are never called at the same
//     time. Each byte is handed over until the destination has reported it as
//     taken, and then never again.
//   - A destination that fails is retried from the first byte it did not take, for
//     ever unless Options.GiveUp is set: after 10 ms, then after twice the previous
//     wait, up to 5 s, each shortened at random by up to half. A write that made
//     progress is repeated at once and resets the waits. After an error that
//     implements RetryAfter() time.Duration the wait is at least that long. A call
//     that panics or calls runtime.Goexit has failed and is assumed to have taken
//     nothing.
//   - A destination that may begin a new stream, as after a reconnect, reports whole
//     lines only, as remote.Writer does. Then the new stream begins with the first
//     line that is not known to be whole.
//   - When every slab is full because the destination stalls, Options.Full says
//     what becomes of new lines. Stats never waits.
//   - With Options.Failover, what a failing or stalling destination does not
//     take goes to the failover, from the start of the first line not known to be
//     whole, until the destination works again.
//   - Each line is accounted for: in every Stats, Accepted = Written + Dropped +
//     Pending, to the line. A line in the stream announces dropped lines. It is in
//     the Write of the first slab begun after the loss, or comes alone once no
//     lines come.
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

	// wake holds at most one token. The goroutine that clears parked sends it.
	wake      chan struct{}
	parked    bool // guarded by mu; run waits for wake
	tickerOff bool // guarded by mu; run waits with its ticker stopped, parked is set
	polling   bool // guarded by mu; parked is set, and run polls the queue soon
	waiters   waiters

	shards []shard // read-only: none, or several
	none   term    // always sealed: the current term of a shard without a slab

	kept keeping

	closed   bool          // guarded by mu; no more lines are taken
	expired  bool          // guarded by mu; the deadline of Shutdown has passed
	stopped  bool          // guarded by mu; run has left its loop
	closing  chan struct{} // closed when closed is set
	deadline chan struct{} // closed when expired is set
	finished chan struct{} // closed when closeErr is set
	left     chan struct{} // closed when the file of Options.Persist is
	closeErr error         // read-only after finished is closed
	leaves   bool          // read-only after finished is closed: the deadline passed while no call was active; left is closed soon
}

// opened has the lock and the slab being filled: all that a Write reads while there is
// room between pos and end. When it must read more, end is 0: no slab is open, the
// open one is in a file or reserved for important lines, there are several shards, or
// the Writer is closed.
type opened struct {
	mu        lock  // its holders wait for nothing except the disk of Options.Persist
	class     class // of a line written at pos, unless a mark is made
	pos       int
	end       int     // len(buf) or 0
	lines     int     // in buf[:pos]
	committed *uint64 // of cur
	buf       []byte  // cur.own, nil if cur is nil
}

// A slab has one of these states:
//
//	        acquire          seal           load           all lines accounted for
//	free ────────► filling ───────► sealed ───────► in flight ───────► free
//	  │                               ▲                 │
//	  └── acquire, for one long line ─┘                 └─► over, while an abandoned call
//	                                                        may read it ──► free
//
//	free       in filling.free
//	filling    filling.cur, or the current term of a shard; producers write to it:
//	           holders of mu, or with shards those that reserved room in its term
//	sealed     in queue; read-only from here on
//	in flight  flight.slab; read by run and by calls of the destinations
//
// With several shards a sealed slab may still be written to, until settleLocked finds
// every reserved byte copied.
//
// run repeats: report losses that no line follows, answer the barriers reached, load
// the next sealed slab, write it once. A Write that fails leaves the slab in flight
// for the next turn. With nothing to do run parks, until a producer, the ticker or a
// poll wakes it:
//
//	          nothing to do                    sealed slab, tick, poll, barrier, Close
//	running ─────────────────► parked ──────────────────────────► running
//	   │ closed and empty, or deadline of Shutdown
//	   └────────────────────────────────────────► stopped
type slab struct {
	own   []byte // SlabSize bytes, never replaced
	data  []byte // own[:n], or the memory of one oversized line; nil if free, filling, or not settled (see copiedLocked)
	lines int    // in data
	marks []mark // of the levels of the lines in data, in order; none with several shards
	gap   counts // lines dropped after the slab before and not yet announced

	// How much of the slab is whole lines: a word in the file, for the next
	// process, or else heap, which nothing reads.
	committed *uint64
	heap      uint64
	index     int // in the file
	fileState

	taken time.Duration // when its first line came, as Writer.age has it; guarded by mu

	pos  uint64 // number of its first byte among all ever loaded; 0 until then
	held int    // calls of a destination's Write that may read it; guarded by mu
	over bool   // every line is accounted for, and it is held; guarded by mu

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

	// With several shards, whose slabs replace cur:
	open  int  // shards that have one
	short bool // some line found none since run last checked; see retireDueLocked
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
		deadline: make(chan struct{}),
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
	w.io.destinations[0] = &destination{w: dst, name: "destination"}
	if o.Failover != nil {
		w.io.destinations[1] = &destination{w: o.Failover, name: "failover", index: 1}
	}
	for _, o := range w.io.destinations {
		if o != nil && w.kept.file == nil { // a slab file marks one slab at a time as being written
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
		go w.maintain()
	}
	return w, nil
}

// newSlabs makes all slabs, and the shards. Large ones for a destination that takes
// several buffers are outside the heap, where direct I/O can write from them.
func (w *Writer) newSlabs(vectored bool) ([]*slab, error) {
	o := &w.opts
	var memory [][]byte
	if vectored && o.SlabSize >= direct.InPlace {
		set, err := direct.NewMemorySet(o.SlabCount, o.SlabSize)
		if err != nil {
			return nil, fmt.Errorf("slab: option SlabSize: %w", err)
		}
		// Each user of a slab, including a call that hangs, keeps the Writer reachable.
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
// copies p before it returns. Lines that do not fit one slab are spread over
// several. Their level is unknown: they may not use the slabs that are reserved for
// important lines.
//
// When no slab is free, Options.Full says how long Write waits. Lines that found
// no room are counted as dropped, and Write returns len(p), nil. After Close, Write
// returns os.ErrClosed, also from calls that were waiting. A line longer than
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
			w.setClassLocked(unknown)
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
			w.setClassLocked(c)
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

// put adds lines, for which there is room, to the open slab, and a newline if the
// last one is bare. If the slab is in a file too, the caller has copied the lines
// there, and committed is in the file: that the store follows the copy keeps lines
// from being torn; see package slabfile. If the store faults, pos and lines are
// unchanged.
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

// putUnlock is put, followed by Unlock.
func (o *opened) putUnlock(p []byte) {
	if hasPutLong && len(p) >= longPut {
		putLong(o, unsafe.SliceData(p), len(p))
		return
	}
	o.put(p, false)
	o.mu.Unlock()
}

// longPut is the shortest argument of putLong.
const longPut = 32
