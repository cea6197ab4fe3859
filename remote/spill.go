package remote

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rollway/rollway/internal/linecount"
	"github.com/rollway/rollway/internal/spool"
)

// Spill says where lines wait while the peer is away: in a folder, bounded,
// until they can be sent in their order. With it a Write whose sending fails
// with an error that may pass stores the rest on disk and returns nil.
//
//  1. As long as the folder holds anything, new lines go behind it: lines keep
//     the order in which their producer wrote them. When it is empty, a Write
//     sends again by itself.
//  2. What is stored survives the death of the process, and with Sync that of
//     the machine. What Close leaves, and what a process that was killed has
//     left, is sent by the next Writer with the same Dir, before its own lines
//     and to its own peer. It counts in Stats.Recovered.
//  3. Delivery is at least once: what had no answer is sent again. Over HTTP it
//     is the very same request then, with the same Idempotency-Key, also after
//     the process was killed and when the first attempt was made before the
//     lines went to disk; so a peer that remembers keys stores each line once.
//     Elasticsearch knows the lines by their ids in the same way. After a power
//     cut more may be sent again.
//  4. A disk that hangs holds up Write, Sync and Close; the system offers nothing
//     against that.
//  5. When there is no room, the lines stay with the caller of Write, which
//     returns the error, or with DropOldest the oldest are dropped.
type Spill struct {
	// Dir is the folder, created if need be. One Writer at a time owns it.
	// Default "": nothing is spilled.
	Dir string

	// MaxBytes bounds the files in Dir, in bytes. Default 1 GiB.
	MaxBytes int64

	// MaxAge is the age at which lines are dropped instead of sent. Default 0:
	// no bound.
	MaxAge time.Duration

	// DropOldest drops the oldest lines beyond MaxBytes, some MaxBytes/16 at a
	// time, and counts them. Default false: Write fails, the caller keeps its
	// lines.
	DropOldest bool

	// Sync lets Write return only when what it stored would survive a power
	// cut. Default false: it survives the process.
	Sync bool

	// NoNotice leaves out the canonical line that announces lines dropped from
	// disk, with their number and the reason, where they are missing. Set it
	// if the peer takes lines of another kind only. Default false.
	NoNotice bool
}

// SpillStats is the part of Stats about Options.Spill. All is zero without it.
type SpillStats struct {
	Active    bool          // new lines go to the disk
	Replaying bool          // lines from the disk are being sent now
	Lines     uint64        // on disk or on the way to it, a part of Stats.Pending
	Bytes     int64         // of the files on disk
	OldestAge time.Duration // of the oldest line on disk, 0 if there is none

	Spilled  uint64 // lines stored since Open
	Replayed uint64 // lines settled from the disk since Open: written, refused or too large
	TooOld   uint64 // lines of Dropped.Expired that reached MaxAge; the others gave way to newer ones
	Notices  uint64 // lines sent to announce a loss; not in the ledger

	LastError     error     // of the disk, nil if there was none
	LastErrorTime time.Time // when it happened
}

// A spiller keeps lines on disk while the peer is away and a goroutine that
// sends them when it is back.
type spiller struct {
	w     *Writer
	spool *spool.Spool

	order  chan struct{} // holds one value while lines are put behind those on disk, or it is seen that there are none
	behind bool          // lines go behind those on disk; owned by the holder of order

	sending *sending // what is being replayed; owned by the holder of the Writer's turn

	announced spool.Drops // what notices that were sent speak of; owned by run
	notice    []byte      // the one that is due; owned by run
	noticed   spool.Drops // announced once it is sent; owned by run

	ctx     context.Context // ends the goroutine
	stop    context.CancelFunc
	wake    chan struct{} // holds one value when there is something to replay
	hurry   chan struct{} // holds one value when somebody waits
	stopped chan struct{} // closed when the goroutine has ended

	moved   chan struct{} // closed and replaced when lines are settled; guarded by Writer.mu
	dropped spool.Drops   // taken over into the ledger; guarded by Writer.mu
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
	full := spool.Refuse
	if o.DropOldest {
		full = spool.DropOldest
	}
	sp, err := spool.Open(o.Dir, spool.Options{MaxBytes: o.MaxBytes, MaxAge: o.MaxAge, Full: full})
	if err != nil {
		return fmt.Errorf("Options.Spill: %w", err)
	}
	s := &spiller{
		w:       w,
		spool:   sp,
		order:   make(chan struct{}, 1),
		wake:    make(chan struct{}, 1),
		hurry:   make(chan struct{}, 1),
		stopped: make(chan struct{}),
		moved:   make(chan struct{}),
	}
	s.ctx, s.stop = context.WithCancel(w.life)
	n := sp.Stats().Lines
	w.stats.Pending, w.stats.Recovered, w.stats.Spill = n, n, SpillStats{Lines: n, Active: n > 0}
	s.behind = n > 0
	w.spill = s
	s.account()
	go s.run()
	return nil
}

// write is Writer.write with a disk to fall back on: it sends p, or stores it.
func (s *spiller) write(ctx context.Context, p []byte, left uint64) (n int, _ uint64, err error) {
	if ok, err := s.follow(p, left); ok {
		return settledAll(p, left, err)
	}
	if err := s.w.lock(ctx); err != nil { // the call before this one hangs
		s.w.countError(err)
		err = s.store(p, left, err)
		return settledAll(p, left, err)
	}
	defer s.w.unlock()
	if ok, err := s.follow(p, left); ok {
		return settledAll(p, left, err)
	}
	n, left, err = s.w.deliver(ctx, p, left)
	if err == nil {
		return n, left, nil
	}
	// What the failed request held goes alone and with its key: the peer may
	// have taken it.
	if u, ok := s.w.out.(interface{ unsettled([]byte) (int, string) }); ok {
		if size, key := u.unsettled(p[n:]); size > 0 {
			lines := linecount.Of(p[n : n+size])
			if err := s.storeTagged(p[n:n+size], lines, key, err); err != nil {
				return n, left, err
			}
			n, left = n+size, left-lines
		}
	}
	if err := s.store(p[n:], left, err); err != nil {
		return n, left, err
	}
	return len(p), 0, nil
}

// settledAll is the result of a write that was all stored, or not at all.
func settledAll(p []byte, left uint64, err error) (int, uint64, error) {
	if err != nil {
		return 0, left, err
	}
	return len(p), 0, nil
}

// follow stores p if there are lines on disk that it must not overtake; it
// reports false if there are none.
func (s *spiller) follow(p []byte, lines uint64) (ok bool, err error) {
	s.order <- struct{}{}
	defer func() { <-s.order }()
	if !s.behind {
		return false, nil
	}
	return true, s.append(p, lines, "")
}

// store puts p on disk because of cause.
func (s *spiller) store(p []byte, lines uint64, cause error) error {
	return s.storeTagged(p, lines, "", cause)
}

func (s *spiller) storeTagged(p []byte, lines uint64, tag string, cause error) error {
	if len(p) == 0 {
		return nil
	}
	s.order <- struct{}{}
	defer func() { <-s.order }()
	if err := s.append(p, lines, tag); err != nil {
		return fmt.Errorf("%w; it cannot wait on disk either: %w", cause, err)
	}
	if !s.behind {
		s.behind = true
		s.w.count(func(st *Stats) { st.Spill.Active = true })
		s.w.note(away, 0, cause)
		s.w.tell(false)
	}
	return nil
}

// append stores p, which has so many lines. The caller holds order.
func (s *spiller) append(p []byte, lines uint64, tag string) error {
	// Counted before they can be sent.
	s.w.count(func(st *Stats) { st.Spill.Lines += lines })
	err := s.spool.Append(p, tag)
	s.w.count(func(st *Stats) {
		if err != nil {
			st.Spill.Lines -= lines
		} else {
			st.Spill.Spilled += lines
		}
	})
	s.account()
	if err != nil {
		return err
	}
	if s.w.opt.Spill.Sync {
		if err := s.spool.Sync(); err != nil { // the lines are there all the same
			s.w.note(found, 0, err)
		}
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return nil
}

// account takes over what the spool has dropped and found.
func (s *spiller) account() {
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
		s.w.noteLocked(dropped, n, errors.New(reason))
		s.w.loss.note(reason)
		s.movedLocked()
	}
	for _, f := range findings {
		s.w.noteLocked(found, 0, errors.New(f.String()))
	}
}

// spillReason says why lines were dropped from disk between was and now.
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

// movedLocked wakes those who wait for lines to be settled; Writer.mu is held.
func (s *spiller) movedLocked() {
	close(s.moved)
	s.moved = make(chan struct{})
}

// measure fills in what is of the disk.
func (s *spiller) measure(st *SpillStats) {
	d := s.spool.Stats()
	st.Bytes, st.LastError, st.LastErrorTime = d.Bytes, d.LastError, d.LastErrorTime
	if !d.Oldest.IsZero() {
		st.OldestAge = max(0, time.Since(d.Oldest))
	}
}
