// Package slab decouples those who write lines from where the lines go. A
// Writer copies whole lines into slabs that were allocated once, and one
// goroutine passes each slab on in a single Write, in order. A producer pays
// for a lock and a copy; it never waits for the destination while a slab is
// free.
//
// It stands behind any logger that takes an io.Writer, and in front of any
// io.Writer: a file, a connection, standard output.
package slab

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"math"
	"runtime"
	"time"
	"unsafe"
)

// ErrTooLarge is what the error of Write wraps when a line is longer than
// Options.OversizeLimit.
var ErrTooLarge = errors.New("line too large")

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
//     take, for ever unless Options.Retry says otherwise. One that begins a new
//     stream by itself, as after a reconnect, therefore reports whole lines
//     only, as remote.Writer does; then the new stream begins with the first
//     line that is not known to be whole. One that stalls holds up the queue,
//     and once every slab is full the producers (or, under Drop, their new
//     lines), but never Stats. One that panics or calls runtime.Goexit has
//     failed and is assumed to have taken nothing.
//   - With Options.Failover, what a failing or stalling destination does not
//     take goes to the other, from the start of the first line not known to be
//     whole, until the first one works again.
//   - Each line is accounted for: Accepted = Written + Dropped + Pending holds
//     in every Stats, to the line. Dropped lines are announced in the stream by
//     a line of their own, before the first slab begun after the loss.
type Writer struct {
	opened

	through slog.Level // read-only: Levels.WriteThrough
	keep    slog.Level // read-only: Levels.Keep
	opts    Options    // read-only
	born    time.Time  // read-only

	filling filling
	queue   queue
	flight  flight
	tally   tally
	io      ioState // owned by run

	barriers []*barrier // guarded by mu; in the order of their targets

	// wake holds at most one token; it is sent by whoever found parked set and
	// cleared it.
	wake    chan struct{}
	parked  bool // guarded by mu; run waits for wake
	dozing  bool // guarded by mu; run waits without a ticker, parked is set
	napping bool // guarded by mu; while parked is set, run looks by itself before long
	waiters waiters

	kept keeping

	closed    bool          // guarded by mu; no more lines are taken
	abandoned bool          // guarded by mu; the deadline of Shutdown has passed
	stopped   bool          // guarded by mu; run has left its loop
	closing   chan struct{} // closed when closed is set
	abandon   chan struct{} // closed when abandoned is set
	finished  chan struct{} // closed when closeErr is set
	left      chan struct{} // closed when the file of Options.Persist is
	closeErr  error         // read-only after finished is closed
	leaves    bool          // read-only after finished is closed: the deadline passed outside any call, left follows at once
}

// opened is the lock and the slab being filled, all that a Write needs to look
// at while it finds room between pos and end. So end is 0 whenever it must look
// at more: no slab is open, the open one is kept for important lines, or the
// Writer is closed.
type opened struct {
	mu        lock  // never held while anything else is waited for
	class     class // of a line written at pos, unless a mark is made
	pos       int
	end       int     // len(buf) or 0
	lines     int     // in buf[:pos]
	committed *uint64 // of cur
	buf       []byte  // cur.own, nil if cur is nil
}

// A slab is free, filling, sealed (queued) or in flight (with run). Its memory
// is touched by holders of mu while it fills and by run alone while in flight;
// sealed and in flight its data only gets read.
type slab struct {
	own   []byte // SlabSize bytes, for ever
	data  []byte // own[:n], or the memory of one oversized line; nil if free
	lines int    // in data
	marks []mark // of the levels of the lines in data, in order
	gap   counts // lines dropped after the slab before and not yet announced

	// How much of own is whole lines, for who looks after the process was
	// killed: in the file, or else in heap.
	committed *uint64
	heap      uint64
	index     int  // in the file
	base      int  // of data within the slab in the file
	begun     bool // the file knows of it
}

// filling is the state of the producers' side, guarded by mu.
type filling struct {
	cur     *slab   // holds at least one line; nil until the next line comes
	kept    bool    // cur came out of the reserve: for important lines only
	free    []*slab // a stack, so that the warmest memory is used first
	reserve int     // free slabs that only important lines may take
	gap     counts  // to be announced before the next slab
	minFree int     // lowest len(free) so far
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
		born:     time.Now(),
		through:  levelOr(o.Levels.WriteThrough, math.MaxInt),
		keep:     levelOr(o.Levels.Keep, slog.LevelWarn),
		wake:     make(chan struct{}, 1),
		closing:  make(chan struct{}),
		abandon:  make(chan struct{}),
		finished: make(chan struct{}),
		left:     make(chan struct{}),
	}
	w.mu.alone = runtime.GOMAXPROCS(0) == 1
	w.queue.ring = make([]*slab, o.SlabCount)
	slabs := newSlabs(o.SlabCount, o.SlabSize)
	if o.Persist != "" {
		if slabs, err = w.openFile(dst); err != nil {
			return nil, err
		}
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
	w.io.ticker = time.NewTicker(o.FlushInterval)
	w.io.alarm = time.NewTimer(o.FlushInterval)
	w.io.alarm.Stop()
	go w.run()
	return w, nil
}

// newSlabs allocates the memory of all slabs.
func newSlabs(count, size int) []*slab {
	memory := make([]byte, count*size)
	slabs := make([]*slab, count)
	for i := range slabs {
		lo, hi := i*size, (i+1)*size
		slabs[i] = &slab{own: memory[lo:hi:hi], marks: make([]mark, 0, 16)}
		slabs[i].committed = &slabs[i].heap
	}
	return slabs
}

// Write takes p, one or more whole lines; a missing last newline is added. It
// copies p before it returns. More lines than fit one slab are spread over
// several, split between lines. Their level is unknown: they have no part in
// Options.Levels and rank below all that have one.
//
// When no slab is free, Write waits under Block, up to Options.BlockTimeout if
// that is set, and under Drop not at all. Lines that found no room are counted
// as dropped, and Write returns len(p), nil. After Close it returns
// os.ErrClosed, also to producers that were waiting. A line over
// Options.OversizeLimit is left out, counted, and reported as an error that
// wraps ErrTooLarge; the other lines of p are taken. With an error, n is the
// length of the lines that were taken.
func (w *Writer) Write(p []byte) (n int, err error) {
	w.mu.Lock()
	if n := len(p); n > 0 && n <= w.end-w.pos && p[n-1] == '\n' {
		if w.class != unknown {
			w.turnLocked(unknown)
		}
		w.putUnlock(p)
		return n, nil
	}
	n, _, err = w.writeSlow(p, unknown, false)
	return n, err
}

// WriteLevel is Write for lines of one level, to which the rules of
// Options.Levels apply. What is dropped is counted under the level.
func (w *Writer) WriteLevel(level slog.Level, p []byte) (n int, err error) {
	if level >= w.through {
		return w.writeThrough(level, p)
	}
	c := classOf(level)
	w.mu.Lock()
	if n := len(p); n > 0 && n <= w.end-w.pos && p[n-1] == '\n' {
		if w.class != c {
			w.turnLocked(c)
		}
		w.putUnlock(p)
		return n, nil
	}
	n, _, err = w.writeLevelSlow(level, p)
	return n, err
}

// writeLevel is WriteLevel without write-through; placed reports whether all
// lines that were taken have a place in a slab.
func (w *Writer) writeLevel(level slog.Level, p []byte) (n int, placed bool, err error) {
	w.mu.Lock()
	return w.writeLevelSlow(level, p)
}

// writeLevelSlow is entered with mu held and leaves with it released.
func (w *Writer) writeLevelSlow(level slog.Level, p []byte) (n int, placed bool, err error) {
	w.filling.reserve = w.opts.reserved()
	return w.writeSlow(p, classOf(level), w.filling.reserve > 0 && level >= w.keep)
}

// put adds lines, for which there is room, to the open slab, and the newline that
// a bare last one lacks. For slabs in a file the order of the copy and of the
// store to committed is what keeps a line from being torn; see package slabfile.
func (o *opened) put(p []byte, bare bool) {
	copy(o.buf[o.pos:], p)
	o.lines += bytes.Count(p, newline)
	o.pos += len(p)
	if bare {
		o.buf[o.pos] = '\n'
		o.lines++
		o.pos++
	}
	*o.committed = uint64(o.pos)
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
