package file

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/rollway/rollway/internal/aside"
	"github.com/rollway/rollway/internal/promtext"
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

// WriteMetrics writes s in the text format of Prometheus, for an answer to a scraper.
// labels are names and values in turn, such as "log", "audit"; all samples get them.
// Counters begin at 0 with the File. Stats.Accepted, which may fall, is written plus
// pending. The error names a label that is not allowed, or is out's.
func (s Stats) WriteMetrics(out io.Writer, labels ...string) error {
	return promtext.Write(out, "file", labels, promtext.Table{
		promtext.Counter("lines_written_total", "Lines that are with the operating system.", s.Written),
		promtext.Counter("lines_returned_total", "Lines handed back by a Write that failed.", s.Returned),
		promtext.Gauge("lines_pending", "Lines inside a Write.", s.Pending),
		promtext.Counter("lines_rejected_total", "Lines given after Close.", s.Rejected),
		promtext.Counter("written_bytes_total", "Bytes of the written lines.", s.Bytes),
		promtext.Counter("padded_bytes_total", "Bytes of white space that fill blocks.", s.PaddedBytes),
		promtext.Counter("cut_bytes_total", "Bytes of torn lines that were cut when a file was opened.", s.CutBytes),
		promtext.Counter("torn_bytes_total", "Bytes of torn lines that a failed Write has left.", s.TornBytes),
		promtext.Counter("syncs_total", "Calls of fsync.", s.Syncs),
		promtext.Counter("reopens_total", "Times the path was opened again.", s.Reopens),
		promtext.Counter("followed_total", "Those of reopens_total without a call, because the path named another file.", s.Followed),
		promtext.Counter("truncations_total", "Times the file was found shorter than it was left.", s.Truncations),
		promtext.Counter("rotations_total", "Files that were rotated.", s.Rotations),
		promtext.Counter("abandoned_total", "Files that were left for another one because they failed.", s.Abandoned),
		promtext.Counter("failovers_total", "Moves to the failover folder.", s.Failovers),
		promtext.Counter("compressed_total", "Rotated files that were compressed.", s.Compressed),
		promtext.Counter("compressed_from_bytes_total", "Their bytes before.", s.CompressedFrom),
		promtext.Counter("compressed_to_bytes_total", "Their bytes after.", s.CompressedTo),
		promtext.Counter("removed_total", "Rotated files that were removed.", s.Removed),
		promtext.Counter("removed_bytes_total", "Their bytes on the disk.", s.RemovedBytes),
		promtext.Counter("recovered_total", "Leftovers of a crash that were finished or removed.", s.Recovered),
		promtext.Counter("errors_total", "Failed writes, syncs, rotations, reopens, closes and background work.", s.Errors),
		promtext.Gauges("info", "The file in use and how it is written; always 1.", []string{"path", "mode"},
			promtext.Of(1, s.Path, s.Mode.String())),
	}, promtext.Failure(s.Failing, s.LastErrorTime))
}
