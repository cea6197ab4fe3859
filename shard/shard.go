// Package shard takes records from many goroutines at once. A Writer spreads
// them over shards by goroutine; in each shard a record's place is reserved
// with one atomic addition and its bytes are copied outside any lock. Full
// buffers go to the destination many at a time, in one vectored write where it
// has one.
//
// It is for many goroutines and large records; slab.Writer is simpler and keeps
// one order for all lines.
package shard

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollway/rollway/internal/direct"
	"github.com/rollway/rollway/internal/goid"
	"github.com/rollway/rollway/internal/linecount"
	"github.com/rollway/rollway/internal/ntcopy"
	"github.com/rollway/rollway/internal/segment"
)

// ErrBufferFull is what LogBytes returns for a record that found no buffer
// free.
var ErrBufferFull = errors.New("shard: no buffer is free")

// ErrTooLarge is what the error for a record longer than one buffer wraps.
var ErrTooLarge = errors.New("shard: record larger than a buffer")

// Writer is an io.WriteCloser for lines and records. All methods are safe for
// concurrent use. Whoever calls New or Open calls Close or Shutdown; until then one
// goroutine runs.
//
//   - A record travels whole: it is never torn and never mixed with another.
//   - The records of one goroutine are written in the order in which it gave
//     them. Those of different goroutines have no order among each other (where
//     goroutines cannot be told apart there is one shard, and one order).
//   - The destination is used by one goroutine. Each byte is handed over until
//     the destination has reported it as taken, and then never again.
//   - A record is refused only when its shard's buffer is full and all others
//     are in use: as those of other shards, queued or being written.
//   - Each record is accounted for: Accepted = Written + Dropped + Pending holds
//     in every Stats. Dropped records are announced in the stream.
type Writer struct {
	opts       Options         // read-only
	begun      time.Time       // read-only
	dst        io.Writer       // used by run alone
	file       *segment.Log    // dst, if Open made it; only its Stats is used by others than run
	chunk      int             // bytes of one vectored write if several buffers make it up; 0: no bound
	framed     bool            // records are framed, not lines
	base       uint64          // where the first record of a term begins
	batches    []segment.Batch // owned by run; of one call
	termSize   int             // bytes
	shards     []shard
	terms      []*term
	memory     *direct.MemorySet // of terms, if Open made them; changed by run at its end
	memorySize int               // bytes
	full       *term             // sealed for ever; the current term of a shard that has none

	dozing atomic.Bool // run waits without a ticker: the next record wakes it
	wake   chan struct{}

	mu       sync.Mutex
	free     []*term       // guarded by mu; sealed and empty
	queue    []*term       // guarded by mu; sealed, in the order in which they are written
	pushed   uint64        // guarded by mu; terms queued since New
	flushed  uint64        // guarded by mu; terms written or given up since New
	tally    tally         // guarded by mu
	relieved int64         // guarded by mu; when a shard without a term last got one, by clock
	waiters  []*waiter     // guarded by mu; in the order in which they came
	barrier  []*barrier    // guarded by mu; in the order of their targets
	reopens  []*reopening  // guarded by mu
	prod     chan struct{} // ends a wait of run between two tries
	io       ioState       // owned by run

	closed    bool          // guarded by mu; no shard has a term, or will soon have none
	lent      bool          // guarded by mu; the destination's method under way has the batch
	abandoned bool          // guarded by mu; the deadline of Shutdown has passed
	stopped   bool          // guarded by mu; run has left its loop
	closing   chan struct{} // closed when every shard is closed
	abandon   chan struct{} // closed when abandoned is set
	finished  chan struct{} // closed when closeErr is set
	closeErr  error         // read-only after finished is closed
}

// shard is where some of the goroutines write.
type shard struct {
	cur atomic.Pointer[term] // nil once closed
	mu  sync.Mutex           // held to replace cur

	full, tooLarge, rejected atomic.Uint64 // records refused
	_                        [88]byte      // keeps shards off each other's cache lines
}

// New starts a Writer in front of dst. The error names the option that is out
// of range; nothing runs then.
func New(dst io.Writer, o Options) (*Writer, error) {
	if dst == nil {
		return nil, errors.New("shard: the destination is nil")
	}
	if o.Direct || o.File != (FileOptions{}) {
		return nil, errors.New("shard: options Direct and File are for Open only")
	}
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	w := build(dst, o)
	for range o.Shards * o.TermsPerShard {
		w.terms = append(w.terms, sealedTerm(make([]byte, w.termSize)))
	}
	w.memorySize = len(w.terms) * w.termSize
	w.start()
	return w, nil
}

// build returns a Writer without terms that does not run.
func build(dst io.Writer, o Options) *Writer {
	return &Writer{
		opts:     o,
		begun:    time.Now(),
		dst:      dst,
		shards:   make([]shard, o.Shards),
		termSize: o.BufferSize / o.Shards,
		full:     sealedTerm(nil),
		tally:    tally{shards: make([]shardTally, o.Shards)},
		wake:     make(chan struct{}, 1),
		prod:     make(chan struct{}, 1),
		closing:  make(chan struct{}),
		abandon:  make(chan struct{}),
		finished: make(chan struct{}),
	}
}

// start hands out the terms and starts run.
func (w *Writer) start() {
	w.free = append(w.free, w.terms...)
	w.queue = make([]*term, 0, len(w.terms))
	for i := range w.shards {
		w.shards[i].cur.Store(w.full)
		w.rotate(&w.shards[i])
	}
	go w.run()
}

// LogBytes appends record, which holds no newline, and a newline. It does not
// keep record. Where no
// buffer is free it returns ErrBufferFull at once, or under Block waits; see
// Options.Full. It returns os.ErrClosed after Close, and an error that wraps
// ErrTooLarge for a record that fits no buffer. With an error nothing of the
// record is written.
func (w *Writer) LogBytes(record []byte) error {
	var until time.Time
	return w.put(record, !w.framed, 1, &until)
}

// Write takes p, one or more whole lines; a missing last newline is added. More
// than fit one buffer are spread over several, split between lines. Lines that
// found no buffer under Drop are counted, and are no error. After Close it
// returns os.ErrClosed; a line that fits no buffer is left out and reported as
// an error that wraps ErrTooLarge, and the other lines of p are taken. With an
// error, n is the length of the lines that were taken.
func (w *Writer) Write(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	if w.framed {
		return w.writeRecords(p)
	}
	if i := bytes.IndexByte(p, '\n'); i == len(p)-1 || i < 0 {
		var until time.Time
		if err = w.put(p, i < 0, 1, &until); err != nil && !errors.Is(err, ErrBufferFull) {
			return 0, err
		}
		return len(p), nil
	}
	return w.writeLines(p)
}

// WriteLevel is Write: all levels are treated alike.
func (w *Writer) WriteLevel(_ slog.Level, p []byte) (n int, err error) { return w.Write(p) }

// writeLines is Write for several lines.
func (w *Writer) writeLines(p []byte) (n int, err error) {
	var until time.Time
	for len(p) > 0 {
		piece := p
		if size := w.termSize; len(p) >= size {
			end := bytes.LastIndexByte(p[:size], '\n') + 1
			if end == 0 {
				end = len(p)
				if i := bytes.IndexByte(p, '\n'); i >= 0 {
					end = i + 1
				}
			}
			piece = p[:end]
		}
		p = p[len(piece):]
		newline := piece[len(piece)-1] != '\n'
		lines := uint64(bytes.Count(piece, []byte{'\n'}))
		if newline {
			lines++
		}
		switch e := w.put(piece, newline, lines, &until); {
		case e == nil || errors.Is(e, ErrBufferFull):
			n += len(piece)
		case errors.Is(e, os.ErrClosed):
			w.shards[0].rejected.Add(linecount.Of(p))
			return n, e
		default:
			err = e
		}
	}
	return n, err
}

// put appends p, which holds that many records, and a newline if asked to.
// until is when the call stops waiting for room; it is set when it first waits.
func (w *Writer) put(p []byte, newline bool, records uint64, until *time.Time) error {
	n := w.size(p, newline)
	s := &w.shards[goid.Hash(uint32(len(w.shards)))]
	if n > uint64(w.termSize)-w.base {
		s.tooLarge.Add(records)
		w.wakeDozing() // to announce it
		return tooLarge(n, w.termSize-int(w.base))
	}
	for {
		t := s.cur.Load()
		if t == nil {
			s.rejected.Add(records)
			return os.ErrClosed
		}
		if t.open() {
			if start, ok := t.reserve(n); ok {
				w.fill(s, t, start, n, p, newline, records)
				return nil
			}
		}
		t, start, err := w.makeRoom(s, n, records, until)
		if err != nil {
			return err
		}
		if t != nil {
			w.fill(s, t, start, n, p, newline, records)
			return nil
		}
	}
}

// fill copies records into the place of n bytes that they have.
func (w *Writer) fill(s *shard, t *term, start, n uint64, p []byte, newline bool, records uint64) {
	end := start + n
	if w.framed {
		t.seed.PutRecord(t.buf[start:end], p)
	} else if ntcopy.Copy(t.buf[start:end], p); newline {
		t.buf[end-1] = '\n'
	}
	t.commit(n, records)
	if start == w.base || end > t.mark && start <= t.mark || s.cur.Load() != t {
		w.written(s, t, start, end)
	}
}

// written does what a record may have caused: the first one of a term starts
// its age, the one that passes the mark may send it off, and one that came
// into a term that is no longer its shard's sends it off as well, so that it
// goes before whatever the goroutine writes next.
func (w *Writer) written(s *shard, t *term, start, end uint64) {
	if start == w.base {
		t.since.CompareAndSwap(0, w.clock(time.Now()))
		w.wakeDozing()
	}
	if s.cur.Load() != t {
		w.sendOff(&w.shards[t.owner.Load()], t)
		return
	}
	if end > t.mark && start <= t.mark {
		w.mu.Lock()
		spare := len(w.free) > 0
		w.mu.Unlock()
		if spare {
			w.sendOff(s, t)
		}
	}
}

// clock is now in ns since New, and never 0. It does not follow a clock that is set:
// were it set back, records would wait for as long as that.
func (w *Writer) clock(now time.Time) int64 { return int64(now.Sub(w.begun)) + 1 }

func (w *Writer) wakeDozing() {
	if w.dozing.Load() && w.dozing.CompareAndSwap(true, false) {
		w.wakeUp()
	}
}

func (w *Writer) wakeUp() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}
