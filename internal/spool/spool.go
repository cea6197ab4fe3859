package spool

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/recordlog"
)

// ErrFull is what the error of an Append wraps if there is no room, within MaxBytes or on
// the disk.
var ErrFull = errors.New("no room in the spool")

// A Spool is a queue of lines in a folder. It is safe for concurrent use, and Stats never
// waits. The caller of Open closes it.
type Spool struct {
	dir  string
	o    Options
	lock disk.Lock

	op sync.Mutex // held by each call except Stats and Findings

	// guarded by op
	segs      []*segment // oldest first; those with lines that are not settled
	writing   bool       // the last of segs takes appends
	next      uint64     // number of the next line to be appended
	at        uint64     // first line that was not handed out; in segs[reading], or its limit
	reading   int        // index in segs
	pos       int64      // in segs[reading], where the frame with at or one before begins
	since     time.Time  // at was not appended before
	out       []*Batch   // handed out, oldest first; the first is not settled, later ones may be
	orphans   []*Batch   // handed out, not settled, and their segment is gone; older than out
	ends      []uint64   // of the pieces to hand out next, which were out before a restart
	spare     [][]byte   // memory for pieces
	bad       badPlace   // passed over and not yet reported
	fails     int        // readings of the frame at pos that failed in a row
	garbage   []*segment // given up, with a file; oldest first
	stray     bool       // the file that the next segment replaces holds a failed append
	total     int64      // bytes in segs and garbage
	saved     saved
	walk      recordlog.Walker
	buf       []byte // the frame being written
	cursorBuf []byte
	closed    bool
	looked    time.Time // when look last compared the folder
	gone      bool      // LOCK in the folder is not the file that lock holds
	count     Stats     // its counters; publish fills the rest

	mu       sync.Mutex
	stats    Stats     // guarded by mu
	findings []Finding // guarded by mu
}

// badPlace is what was skipped.
type badPlace struct {
	file       string
	pos, bytes int64
	detail     string
}

// Open opens the spool in dir, which it creates if necessary, and locks it. Next hands out
// the lines that were left.
func Open(dir string, o Options) (*Spool, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("open spool %s: %w", dir, err)
	}
	s := &Spool{dir: dir, o: o, pos: segmentHeader, looked: time.Now()}
	if err := o.Disk.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("open spool: create folder: %w", err)
	}
	if s.lock, err = recordlog.Lock(o.Disk, dir); err != nil {
		return nil, fmt.Errorf("open spool %s: each folder has one owner at a time: %w", dir, err)
	}
	if err := s.recover(); err != nil {
		return nil, fmt.Errorf("open spool %s: %w", dir, errors.Join(err, s.closeFiles()))
	}
	s.publish()
	return s, nil
}

// look checks, at most once a second, that the folder and the written files have their
// names.
func (s *Spool) look(now time.Time) {
	if now.Sub(s.looked) < time.Second {
		return
	}
	s.looked = now
	was := s.gone
	if s.gone = !s.owns(); s.gone {
		if !was {
			s.find(Finding{Kind: recordlog.Gone, File: recordlog.LockName, Detail: errGone.Error()})
		}
		return
	}
	if f := s.saved.file; f != nil && removed(f) {
		s.find(Finding{Kind: recordlog.Gone, File: cursorName, Detail: "it is written anew"})
		s.forgetCursor()
	}
	if !s.writing {
		return
	}
	if seg := s.segs[len(s.segs)-1]; removed(seg.file) {
		s.find(Finding{Kind: recordlog.Gone, File: segmentName(seg.line), Detail: "its lines are read through the open file, new lines go to another"})
		s.writing = false
	}
}

var errGone = errors.New("the folder, or LOCK in it, was removed, renamed or replaced, and may have another owner: put it back, or open the spool again")

// owns reports whether the folder is still the locked one, as far as is known.
func (s *Spool) owns() bool { return !removed(s.lock) }

func removed(f disk.Sameness) bool {
	same, err := f.Same()
	return err == nil && !same
}

// firstLine returns the number of the oldest line that is not settled.
func (s *Spool) firstLine() uint64 {
	if len(s.orphans) > 0 {
		return s.orphans[0].Line
	}
	return s.firstStored()
}

// firstStored returns the number of the oldest line on disk that is not settled.
func (s *Spool) firstStored() uint64 {
	if len(s.out) > 0 {
		return s.out[0].Line
	}
	return s.at
}

// Append stores lines, each ended by '\n'. The error wraps ErrFull if there is no room.
func (s *Spool) Append(lines []byte) error {
	if len(lines) == 0 {
		return nil
	}
	if lines[len(lines)-1] != '\n' || len(lines) > recordlog.MaxBody {
		return fmt.Errorf("append %d bytes to spool: not whole lines, or above %d bytes", len(lines), recordlog.MaxBody)
	}
	s.op.Lock()
	defer s.op.Unlock()
	defer s.publish()
	n := uint64(recordlog.LineCount(lines))
	if s.closed {
		s.count.Refused += n
		return fmt.Errorf("append to spool: %w", os.ErrClosed)
	}
	if err := s.append(lines); err != nil {
		s.count.Refused += n
		if disk.IsFull(err) {
			err = fmt.Errorf("%w: %w", ErrFull, err)
		}
		err = fmt.Errorf("append to spool: %w", err)
		s.fail(err)
		return err
	}
	s.count.Appended += n
	return nil
}

// Sync makes all appended lines durable. A segment whose fsync failed is neither written
// nor synced again: its error returns until its lines are settled.
func (s *Spool) Sync() error {
	s.op.Lock()
	defer s.op.Unlock()
	defer s.publish()
	if s.closed {
		return fmt.Errorf("sync spool: %w", os.ErrClosed)
	}
	return s.sync()
}

func (s *Spool) sync() error {
	s.save(true) // an error is counted
	var errs []error
	for i, seg := range s.segs {
		if seg.dirty && seg.syncErr == nil {
			seg.syncErr = seg.file.Sync()
			seg.dirty = false
		}
		if seg.syncErr != nil {
			errs = append(errs, seg.syncErr)
			if i == len(s.segs)-1 {
				s.writing = false
			}
		}
	}
	if err := errors.Join(append(errs, s.o.Disk.SyncDir(s.dir))...); err != nil {
		err = fmt.Errorf("sync spool: %w", err)
		s.fail(err)
		return err
	}
	return nil
}

// Close writes the cursor, makes durable what is left and releases the folder. Lines that
// are not settled stay for the next Open. Later calls return nil.
func (s *Spool) Close() error {
	s.op.Lock()
	defer s.op.Unlock()
	defer s.publish()
	if s.closed {
		return nil
	}
	s.closed = true
	s.removeSettled(true)
	s.sweep()
	for _, b := range s.orphans {
		s.count.Dropped.Full += b.lines
	}
	s.orphans = nil
	err := errors.Join(s.rollBackAgain(), s.save(true))
	if len(s.segs) > 0 {
		err = errors.Join(err, s.sync())
	}
	if err = errors.Join(err, s.closeFiles()); err != nil {
		return fmt.Errorf("close spool: %w", err)
	}
	return nil
}

// closeFiles closes the files, makes the cursor durable and releases the lock.
func (s *Spool) closeFiles() error {
	var errs []error
	for _, seg := range s.segs {
		if seg.file != nil {
			errs = append(errs, seg.file.Close())
			seg.file = nil
		}
	}
	if f := s.saved.file; f != nil {
		s.saved.file = nil
		errs = append(errs, f.Sync(), f.Close())
	}
	return errors.Join(append(errs, s.lock.Close())...)
}
