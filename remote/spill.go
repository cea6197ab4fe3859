package remote

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rollway/rollway/internal/aside"
	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/spool"
)

// Spill makes a folder on disk the queue between Write and the peer: Write stores the
// lines there and returns, and a goroutine sends them.
//
//  1. Lines are sent in the order of their Writes (see 4 for the exception), in requests
//     of up to Options.MaxBatch. Over HTTP, when full requests wait although the one
//     before is on its way, up to Window are under way at a time, as many as the peer
//     answers without becoming slower. Each begins when the one before it has been
//     sent, and names it in the header Idempotency-After, so that a Rollway collector
//     stores them in this order. Where the order matters to another peer, set Window
//     to 1.
//  2. Stored lines survive the death of the process, and with Sync that of the
//     machine. The next Writer with the same Dir sends the lines that Close or a
//     killed process has left, before its own and to its own peer. They count in
//     Stats.Recovered.
//  3. Delivery is at least once: what had no answer is sent again. Over HTTP it is the
//     very same request then, with the same Idempotency-Key, also after the process
//     was killed, unless it was being divided or MaxBatch has changed; so a peer that
//     remembers keys stores each line once. Elasticsearch knows the lines by their
//     ids. After a power cut more may be sent again.
//  4. When the peer gives a request the same error again and again, the next one is
//     sent to see whether it accepts that. If it does, others go on, and after five
//     errors the request is divided until the lines that cause them are found; after
//     ten with 502, 503 or 504, after twenty with 408, 425, 429 or Retry-After. These
//     lines are dropped, counted and appended to dead-letters.log in Dir, as is each
//     line that the peer refuses by name or alone. "rollway send" sends such a file.
//     It grows up to 64 MiB, and may be sent, moved or removed at any time.
//  5. A disk that hangs blocks Write, Sync and Close.
//  6. Without room within MaxBytes, Write returns an error, or with DropOldest the
//     oldest lines are dropped. Lines that the disk does not take while nothing waits
//     there are sent directly, as without Spill.
type Spill struct {
	// Dir is the folder, created if need be. One Writer at a time owns it.
	// Default "": nothing is spilled.
	Dir string

	// MaxBytes bounds the files in Dir, in bytes, dead-letters.log aside.
	// Default 1 GiB.
	MaxBytes int64

	// MaxAge is the age at which lines are dropped instead of sent. Default 0:
	// no bound.
	MaxAge time.Duration

	// DropOldest drops the oldest lines beyond MaxBytes, some MaxBytes/16 at a time.
	// Default false: Write fails, the caller keeps its lines.
	DropOldest bool

	// Window is how many requests may be under way at a time. 1 keeps the order of the
	// lines, except as in 4. Default 8. Streams and datagrams have 1.
	Window int

	// Sync lets Write return only when its lines would survive a power cut.
	// Default false: they survive the process.
	Sync bool

	// NoNotice leaves out the canonical line that announces lines dropped from disk
	// where they are missing. Set it if the peer takes only lines of another kind.
	NoNotice bool
}

// SpillStats is the part of Stats about Options.Spill. All is zero without it.
type SpillStats struct {
	Lines     uint64        // on disk or on the way to it, a part of Stats.Pending
	Bytes     int64         // of the files on disk
	OldestAge time.Duration // of the oldest line on disk, 0 without one
	InFlight  int           // requests, or pieces of a stream, on their way to the peer
	Window    int           // how many may be now

	TooOld      uint64 // lines of Dropped.Expired that reached MaxAge; the others gave way to newer ones
	DeadLetters uint64 // lines of Dropped.Refused and Dropped.TooLarge that were appended to dead-letters.log
	Notices     uint64 // lines sent to announce a loss; not in the ledger

	LastError     error     // of the disk, nil if there was none
	LastErrorTime time.Time // when it happened
}

// A spillQueue is the queue on disk and the goroutine that sends what is in it.
type spillQueue struct {
	w           *Writer
	spool       *spool.Spool
	deadLetters deadLetterFile

	storing chan struct{} // holds one value while a Write stores its lines; waiters are served in order

	ctx     context.Context // ends the goroutine
	stop    context.CancelFunc
	wake    chan struct{} // holds one value when there is something to send
	flush   chan struct{} // holds one value when a Flush, Sync or Shutdown waits
	stopped chan struct{} // closed when the goroutine has ended

	window // owned by run

	announced spool.Drops // what notices that were sent speak of; owned by run
	notice    []byte      // the one that is due; owned by run
	noticed   spool.Drops // announced once it is sent; owned by run

	noticeErrors int    // answers in a row that refuse the notice; owned by run
	noticePassed uint64 // window.passed at the latest of them; owned by run

	progress chan struct{} // closed and replaced when lines are settled; guarded by Writer.mu
	dropped  spool.Drops   // taken over into the ledger; guarded by Writer.mu
}

// openSpill opens the folder of Options.Spill and begins to send what is there.
func (w *Writer) openSpill() error {
	o := w.opt.Spill
	if o.Dir == "" {
		if o != (Spill{}) {
			return errors.New("Options.Spill has no Dir: name a folder, or leave out the rest")
		}
		return nil
	}
	if o.Window < 0 || o.Window > maxWindow {
		return fmt.Errorf("Options.Spill.Window is %d: give 1 to %d, or 0 for the default %d", o.Window, maxWindow, maxWindow)
	}
	full := spool.Refuse
	if o.DropOldest {
		full = spool.DropOldest
	}
	sp, err := spool.Open(o.Dir, spool.Options{MaxBytes: o.MaxBytes, MaxAge: o.MaxAge, Full: full})
	if err != nil {
		return fmt.Errorf("Options.Spill: %w", err)
	}
	s := &spillQueue{
		w:           w,
		spool:       sp,
		deadLetters: deadLetterFile{dir: o.Dir, sync: o.Sync},
		storing:     make(chan struct{}, 1),
		wake:        make(chan struct{}, 1),
		flush:       make(chan struct{}, 1),
		stopped:     make(chan struct{}),
		progress:    make(chan struct{}),
	}
	s.window = newWindow(w)
	s.ctx, s.stop = context.WithCancel(w.life)
	n := sp.Stats().Recovered // account takes off what is missing
	w.stats.Pending, w.stats.Recovered, w.stats.Spill = n, n, SpillStats{Lines: n, Window: 1}
	w.spill = s
	s.takeCounts()
	go s.run()
	return nil
}

// write stores p, or sends it where the disk does not take it and nothing waits there.
func (s *spillQueue) write(ctx context.Context, p []byte, left uint64) (n int, _ uint64, err error) {
	if err := acquire(ctx, s.storing); err != nil {
		s.w.countError(err)
		return 0, left, err
	}
	defer func() { <-s.storing }()
	failed := s.append(p, left)
	if failed == nil {
		return len(p), 0, nil
	}
	if s.spool.Stats().Lines > 0 {
		return 0, left, failed
	}
	n, left, err = s.w.deliver(ctx, p, left)
	if err != nil {
		err = fmt.Errorf("%w; it cannot wait on disk either: %w", err, failed)
	}
	return n, left, err
}

// append stores p, which has so many lines. The caller holds storing.
func (s *spillQueue) append(p []byte, lines uint64) error {
	// Counted before they can be sent.
	s.w.count(func(st *Stats) { st.Spill.Lines += lines })
	err := s.spool.Append(p)
	if err != nil {
		s.w.count(func(st *Stats) { st.Spill.Lines -= lines })
	}
	s.takeCounts()
	if err != nil {
		return err
	}
	if s.w.opt.Spill.Sync {
		if err := s.spool.Sync(); err != nil { // the lines are there all the same
			s.w.note(diskFinding, 0, err)
		}
	}
	aside.Signal(s.wake)
	return nil
}

// takeCounts counts the lines that the spool has dropped, and reports its findings.
func (s *spillQueue) takeCounts() {
	findings := s.spool.Findings()
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	now := s.spool.Stats().Dropped
	was := s.dropped
	s.dropped = now
	st := &s.w.stats
	st.Dropped.Expired, st.Spill.TooOld = now.Full+now.Old, now.Old
	st.Dropped.Damaged = now.Damaged
	if n := now.Total() - was.Total(); n > 0 {
		st.Pending -= n
		st.Spill.Lines -= n
		reason := spillReason(now, was)
		s.w.noteLocked(droppedLines, n, errors.New(reason))
		s.w.loss.note(reason)
		s.wakeWaitersLocked()
	}
	for _, f := range findings {
		s.w.noteLocked(diskFinding, 0, errors.New(f.String()))
	}
}

func spillReason(now, was spool.Drops) string {
	switch {
	case now.Full > was.Full:
		return "there was no more room on disk (Spill.DropOldest)"
	case now.Old > was.Old:
		return "older than Spill.MaxAge"
	default:
		return "damaged on disk"
	}
}

func (s *spillQueue) wakeWaitersLocked() {
	close(s.progress)
	s.progress = make(chan struct{})
}

// addDiskStats fills in the figures of the disk.
func (s *spillQueue) addDiskStats(st *SpillStats) {
	d := s.spool.Stats()
	st.Bytes, st.LastError, st.LastErrorTime = d.Bytes, d.LastError, d.LastErrorTime
	if !d.Oldest.IsZero() {
		st.OldestAge = max(0, time.Since(d.Oldest))
	}
}

const (
	deadLettersName = "dead-letters.log"
	maxDeadLetters  = 64 << 20 // bytes of that file
)

// A deadLetterFile is the file of refused lines. It is opened for each, so that it may be
// sent and removed at any time.
type deadLetterFile struct {
	dir  string
	sync bool
	mu   sync.Mutex // held while lines are appended
}

// add appends lines, with or without the last one's end.
func (d *deadLetterFile) add(lines []byte) (err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	path := filepath.Join(d.dir, deadLettersName)
	defer func() {
		if err != nil {
			err = fmt.Errorf("refused lines are not kept in %s: %w", path, err)
		}
	}()
	f, err := disk.Real{}.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return err
	}
	if size+int64(len(lines)) > maxDeadLetters {
		return fmt.Errorf(`it has %d MiB: send it again with "rollway send", and remove it`, maxDeadLetters>>20)
	}
	if n := len(lines); n == 0 || lines[n-1] != '\n' {
		lines = append(lines[:n:n], '\n')
	}
	if last := []byte{'\n'}; size > 0 {
		if _, err := f.ReadAt(last, size-1); err != nil {
			return err
		}
		if last[0] != '\n' { // a process was killed here
			lines = append([]byte{'\n'}, lines...)
		}
	}
	if _, err := f.WriteAt(lines, size); err != nil {
		return errors.Join(err, f.Truncate(size))
	}
	if d.sync {
		return f.Sync()
	}
	return nil
}

// addDeadLetters appends n refused lines to the file of dead letters.
func (s *spillQueue) addDeadLetters(lines []byte, n uint64) {
	if err := s.deadLetters.add(lines); err != nil {
		s.w.note(diskFinding, 0, err)
		return
	}
	s.w.count(func(st *Stats) { st.Spill.DeadLetters += n })
}
