package slab

import "time"

// Stats is a consistent picture of a Writer at one moment. Lines, bytes and
// calls are counted from New on, notices not among the lines.
//
//	Accepted = Written + Dropped.Total() + Pending
type Stats struct {
	Accepted   uint64 // lines given to Write before Close, dropped ones included
	Written    uint64 // lines of which a destination has taken the last byte
	FailedOver uint64 // those of Written that the failover has taken
	Dropped    Drops
	Pending    uint64 // lines in slabs, being filled, queued or being written

	DroppedByLevel LevelDrops // what Dropped counts, by level

	Recovered uint64 // those of Accepted that Options.Persist brought from earlier processes
	SetAside  string // where Options.Persist has kept a damaged file of theirs, or ""
	Unkept    uint64 // oversized lines for which Options.Persist had no room, and which a kill would lose

	Rejected uint64 // lines given to Write after Close, or waiting when it came

	BytesAccepted uint64 // of the accepted lines, with their newlines
	Bytes         uint64 // taken by the destinations, notices and repeated lines included
	// LineMax is the longest line seen so far, in bytes: of slabs that hold up
	// to 64 lines all are looked at, of others the first, which is more likely a
	// long one since it did not fit the slab before.
	LineMax int

	Writes    uint64        // calls of a destination's Write that have returned
	WriteTime time.Duration // that they took together
	WriteMax  time.Duration // the longest; one under way counts with its age
	Errors    uint64        // those of Writes that failed
	Retries   uint64        // calls of a destination's Write that repeat a failed one
	Notices   uint64        // lines written to announce losses; not in the ledger

	Slabs       int // allocated
	SlabsFree   int // neither being filled nor queued nor being written
	SlabsQueued int // sealed and waiting for the destination
	SlabsPeak   int // most that were not free at one time
	Waiting     int // producers waiting for a slab now

	FailingOver bool  // the failover is in use
	LastError   error // of the latest Write of the destination in use; nil while it works
}

// tally holds the counters, guarded by mu.
type tally struct {
	sealed        uint64 // lines in slabs that were sealed
	sealedBytes   uint64 // in slabs that were sealed
	unplaced      uint64 // lines that were dropped for want of a place
	unplacedBytes uint64
	lineMax       int

	written    uint64
	failedOver uint64
	dropped    losses
	rejected   uint64

	bytes     uint64
	writes    uint64
	writeTime time.Duration
	writeMax  time.Duration
	errors    uint64
	retries   uint64
	notices   uint64

	lastErr error // of the latest Write
	lossErr error // for which lines were last given up
}

// Stats returns the state of the Writer. It does not wait for the destination,
// and holds up producers for less than a microsecond. With Options.Persist it
// may wait for the disk of the slab file while a line that is longer than a
// slab is written there, or is let go of, as producers do: on a tmpfs, where the
// file should be, that is a copy.
func (w *Writer) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	f, t := &w.flight, &w.tally
	filling := uint64(w.lines)
	pending := filling
	for i := range w.queue.n {
		pending += uint64(w.queue.at(i).lines)
	}
	pending += f.main.lines + f.front.lines
	s := Stats{
		Accepted:       t.sealed + filling + t.unplaced,
		Written:        t.written,
		FailedOver:     t.failedOver,
		Dropped:        t.dropped.total().drops(),
		DroppedByLevel: t.dropped.byLevel(),
		Pending:        pending,
		Recovered:      w.kept.recovered,
		SetAside:       w.kept.aside,
		Unkept:         w.kept.unkept,
		Rejected:       t.rejected,
		BytesAccepted:  t.sealedBytes + uint64(w.pos) + t.unplacedBytes,
		Bytes:          t.bytes,
		LineMax:        t.lineMax,
		Writes:         t.writes,
		WriteTime:      t.writeTime,
		WriteMax:       t.writeMax,
		Errors:         t.errors,
		Retries:        t.retries,
		Notices:        t.notices,
		Slabs:          w.opts.SlabCount,
		SlabsFree:      len(w.filling.free),
		SlabsQueued:    w.queue.n,
		SlabsPeak:      w.opts.SlabCount - w.filling.minFree,
		Waiting:        w.waiters.urgent.n + w.waiters.plain.n,
		FailingOver:    f.over,
		LastError:      t.lastErr,
	}
	for _, c := range f.calls {
		if c != nil {
			s.WriteMax = max(s.WriteMax, w.age()-c.began)
		}
	}
	return s
}
