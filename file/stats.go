package file

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/rollway/rollway/internal/aside"
	"github.com/rollway/rollway/line"
)

// Stats is a snapshot of a File's counters; lines unless said otherwise. A File drops
// nothing: always Accepted = Written + Pending.
//
// A line is accepted when a Write begins, and Pending until that Write returns. A Write
// that fails returns the lines after its n to the caller: they leave Pending and Accepted
// and are counted in Returned. Sent again, they are accepted again. So Accepted may fall.
type Stats struct {
	line.Ledger
	Returned uint64 // handed back by a Write that failed

	Bytes       uint64 // of the lines in Written
	PaddedBytes uint64 // of white space that fills blocks; see WriteBuffers
	CutBytes    uint64 // of torn lines: cut by Open and Reopen
	TornBytes   uint64 // of torn lines: left by a failed Write, removed or ended
	Syncs       uint64 // calls of fsync

	Reopens     uint64 // times the path was opened again
	Followed    uint64 // of these without a call, as the path no longer named the file
	Truncations uint64 // times the file was found shorter than before
	Rotations   uint64 // files that were given a name of their own
	Abandoned   uint64 // files that failed and were replaced by another one
	Failovers   uint64 // moves to Options.Failover

	Compressed     uint64 // rotated files that were compressed,
	CompressedFrom uint64 // their bytes before
	CompressedTo   uint64 // and after
	Removed        uint64 // rotated files that were removed,
	RemovedBytes   uint64 // and their bytes on the disk
	Recovered      uint64 // leftovers of a crash that were finished or removed

	Path string // of the file in use
	Mode Mode   // how bytes get to the disk: Buffered where the file system refuses another

	Errors        uint64    // failed writes, syncs, rotations, reopens, closes and background work
	Failing       bool      // the latest Write failed
	LastError     error     // the latest error, nil if there was none
	LastErrorTime time.Time // when it happened
}

// Stats returns the counters. It never waits for the disk.
func (f *File) Stats() Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.stats
	s.Accepted = s.Written + s.Pending
	return s
}

func (f *File) count(change func(*Stats)) {
	f.mu.Lock()
	change(&f.stats)
	f.mu.Unlock()
}

func (f *File) countError(err error) {
	now := time.Now()
	f.count(func(s *Stats) { s.Errors++; s.LastError, s.LastErrorTime = err, now })
}

// fail names the call and the file, unless err is a PathError.
func (f *File) fail(call string, err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok && pe == err {
		return fmt.Errorf("file: %w", err)
	}
	return fmt.Errorf("file: %s %s: %w", call, f.path, err)
}

type topic int

const (
	note topic = aside.Note + iota
	writing
	leaving // a file that has failed
	staying // of such a file where it is
	tearing
	doubling
	truncated // by another program
	grown
	rotating
	reopening
	closing
	linking
	syncing
	stalling
	maintaining
	compressing
	removing
)

// tell counts an error that fails no call and reports it.
func (f *File) tell(of topic, err error) {
	f.countError(err)
	f.teller.Tell(int(of), err)
}

// notice reports to OnError what is not an error. It returns false if OnError will not get it.
func (f *File) notice(of topic, format string, args ...any) bool {
	return f.teller.Tell(int(of), fmt.Errorf("file: "+format, args...))
}
