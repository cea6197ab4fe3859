package slab

import (
	"io"
	"time"

	"github.com/rollway/rollway/internal/promtext"
	"github.com/rollway/rollway/line"
)

// Stats is a consistent snapshot of a Writer. Lines, bytes and calls are counted from
// New on; notices are not among the lines.
type Stats struct {
	line.Ledger // Pending lines are in slabs, being filled, queued or being written

	DroppedByLevel ByLevel // the lines of Dropped, by level
	FailedOver     uint64  // those of Written that the failover has taken
	Notices        uint64  // lines written to announce losses; not in the ledger

	Recovered uint64 // those of Accepted that Options.Persist brought from earlier processes
	SetAside  string // where Options.Persist has kept a damaged file of theirs, or ""
	// Unkept is how many lines a kill would have lost: those that were pending when
	// the file of Options.Persist was lost, those taken before there was a new one,
	// and those too long for it.
	Unkept uint64
	// DamagedBytes is what New left out because the file was damaged; the lines in
	// it, as far as they are known, are Dropped.Damaged.
	DamagedBytes uint64
	PersistError error // why Options.Persist keeps no lines now; nil while it does

	BytesAccepted uint64 // of the accepted lines, with their newlines
	Bytes         uint64 // taken by the destinations, notices and repeated lines included
	// LineMax is the longest line measured so far, in bytes. All lines of slabs with up
	// to 64 lines are measured; of others only the first, which is likely a long one
	// because it did not fit the previous slab.
	LineMax int

	Writes    uint64        // calls of a destination's Write that have returned
	WriteTime time.Duration // that they took together
	WriteMax  time.Duration // the longest; an active one counts with its age
	Errors    uint64        // those of Writes that failed
	// Stalled is the age of the longest call of a destination that has not returned
	// within MaxWait, or CloseTimeout for Sync and Close; 0 if there is none.
	Stalled time.Duration
	// OldestAge is the age of the oldest pending line, 0 if there is none. All lines of
	// a slab have the age of its first; recovered lines have the age of the Writer.
	OldestAge time.Duration

	Memory    int // bytes of the slabs, without their copy in the file of Options.Persist; lines longer than a slab come on top
	Slabs     int // allocated
	SlabsFree int // neither being filled nor queued nor being written
	SlabsPeak int // most that were not free at one time
	Waiting   int // calls that wait for room now

	FailingOver bool // the failover is in use

	// Failing reports that the latest Write of the destination in use has failed,
	// or that a call of it lasts longer than MaxWait and four times the mean.
	Failing       bool
	LastError     error     // the latest error, of either destination; nil if there was none
	LastErrorTime time.Time // of LastError
}

// tally holds the counters, guarded by mu.
type tally struct {
	Stats // those that are counted as they are reported; Writer.Stats computes the others

	sealed      uint64 // lines in slabs that were sealed
	sealedBytes uint64 // in slabs that were sealed
	noRoom      uint64 // lines dropped because no slab was free, or too large
	noRoomBytes uint64
	dropped     losses
	toldLost    counts // those of dropped that OnError was told of; with Writer.telling held
	alarmed     bool   // a tellLosses is due
	watched     bool   // a tellStall is due

	failing error // of the latest Write of the destination in use
	lossErr error // the error for which lines were last given up
}

// failedLocked notes the result of a Write of o.
func (w *Writer) failedLocked(o *destination, err error) {
	if o == w.io.used {
		w.tally.failing = err
	}
	if err != nil {
		w.tally.LastError, w.tally.LastErrorTime = err, time.Now()
	}
}

// Stats returns the state of the Writer. It does not wait for the destination,
// and delays producers for less than a microsecond. With Options.Persist, Stats and
// producers may wait for the disk of that file while a line longer than a slab is
// written to it or removed; on a tmpfs that is only a copy.
func (w *Writer) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	f, t := &w.flight, &w.tally
	filling, fillingBytes := w.fillingLocked()
	s := t.Stats
	s.Accepted = t.sealed + filling + t.noRoom
	s.Dropped, s.DroppedByLevel = t.dropped.drops(), t.dropped.levels()
	s.Pending = w.pendingLocked(filling)
	s.BytesAccepted = t.sealedBytes + fillingBytes + t.noRoomBytes
	s.Recovered, s.SetAside, s.DamagedBytes = w.kept.recovered, w.kept.aside, w.kept.cut
	s.Unkept, s.PersistError = w.kept.unkept, w.kept.lost
	s.Memory = w.opts.SlabSize * w.opts.SlabCount
	s.Slabs, s.SlabsFree = w.opts.SlabCount, len(w.filling.free)
	s.SlabsPeak = s.Slabs - w.filling.minFree
	for r := range w.waiters.of {
		s.Waiting += w.waiters.of[r].n
	}
	if c := w.filling.cur; c != nil && w.kept.file != nil && !c.begun {
		s.Unkept += filling
	}
	now := w.age()
	for _, c := range f.calls {
		if c != nil {
			s.WriteMax = max(s.WriteMax, now-c.began)
			s.Stalled = max(s.Stalled, w.stallLocked(activeCall{c.out, "Write", c.began}, now))
		}
	}
	if f.active.out != nil {
		s.Stalled = max(s.Stalled, w.stallLocked(f.active, now))
	}
	if s.Pending > 0 {
		s.OldestAge = now - w.oldestLocked(now)
	}
	if err := w.failureLocked(); err != nil {
		s.Failing = true
		if err != t.failing { // a call that lasts
			s.LastError, s.LastErrorTime = err, time.Now()
		}
	}
	return s
}

// stallLocked returns the age of in if it lasts too long, or else 0.
func (w *Writer) stallLocked(in activeCall, now time.Duration) time.Duration {
	if _, err := w.stalledLocked(in); err == nil {
		return 0
	}
	return now - in.began
}

// oldestLocked returns when the oldest pending line came, or now.
func (w *Writer) oldestLocked(now time.Duration) time.Duration {
	f, oldest := &w.flight, now
	see := func(lines uint64, taken time.Duration) {
		if lines > 0 {
			oldest = min(oldest, taken)
		}
	}
	see(f.front.lines, f.front.taken)
	see(f.main.lines, f.main.taken)
	for i := range w.queue.n {
		s := w.queue.at(i)
		lines := uint64(s.lines)
		if s.data == nil {
			lines, _ = s.term.filled()
		}
		see(lines, s.taken)
	}
	if s := w.filling.cur; s != nil {
		see(uint64(w.lines), s.taken)
	}
	for i := range w.shards {
		t := w.shards[i].cur.Load()
		lines, _ := t.filled()
		see(lines, t.slab.taken)
	}
	return oldest
}

// WriteMetrics writes s in the text format of Prometheus, for an answer to a
// scraper. labels are names and values by turns, such as "log", "audit"; all
// samples get them. Counters begin at 0 with the Writer, times are in seconds.
// The error names a label that is not allowed, or is out's.
func (s Stats) WriteMetrics(out io.Writer, labels ...string) error {
	mean := 0.0
	if s.Writes > 0 {
		mean = s.WriteTime.Seconds() / float64(s.Writes)
	}
	l := s.DroppedByLevel
	return promtext.Write(out, "slab", labels, promtext.Ledger(s.Ledger), promtext.Table{
		promtext.Counters("lines_dropped_by_level_total", "Lines lost, by level.", []string{"level"},
			promtext.Of(l.Debug, "debug"), promtext.Of(l.Info, "info"), promtext.Of(l.Warn, "warn"),
			promtext.Of(l.Error, "error"), promtext.Of(l.Unknown, "unknown")),
		promtext.Counter("lines_failed_over_total", "Lines that the failover has taken.", s.FailedOver),
		promtext.Counter("lines_recovered_total", "Lines left by earlier processes.", s.Recovered),
		promtext.Counter("accepted_bytes_total", "Bytes of the accepted lines.", s.BytesAccepted),
		promtext.Counter("written_bytes_total", "Bytes that the destinations have taken.", s.Bytes),
		promtext.Summary("write_duration_seconds", "Time of the calls of a destination's Write.", s.WriteTime, s.Writes),
		promtext.Gauge("write_duration_mean_seconds", "Mean of these times.", mean),
		promtext.Seconds("write_duration_max_seconds", "Longest of these times, or the age of a call in progress.", s.WriteMax),
		promtext.Counter("write_errors_total", "Calls that failed.", s.Errors),
		promtext.Seconds("stalled_seconds", "How long a call of a destination has been overdue, or 0.", s.Stalled),
		promtext.Seconds("oldest_line_age_seconds", "Age of the oldest pending line, or 0.", s.OldestAge),
		promtext.Gauge("memory_bytes", "Bytes of the slabs, which are fixed.", s.Memory),
		promtext.Gauge("slabs", "Slabs.", s.Slabs),
		promtext.Gauge("slabs_free", "Slabs not in use.", s.SlabsFree),
		promtext.Gauge("slabs_peak", "Most slabs in use at one time.", s.SlabsPeak),
		promtext.Gauge("waiting", "Calls that wait for room.", s.Waiting),
		promtext.Flag("failing_over", "1 while the failover is in use.", s.FailingOver),
	}, promtext.Failure(s.Failing, s.LastErrorTime))
}
