package journal

import "time"

// Stats is a snapshot of a Journal. Counters begin at Open.
type Stats struct {
	First    uint64 // offset of the oldest record kept
	Next     uint64 // offset the next record will get
	Synced   uint64 // all kept records below are durable, but those whose fsync failed
	Segments int    // files
	Bytes    int64  // in those files
	Waiting  int    // full segments that wait to be packed
	Unpacked int64  // bytes of those
	Readers  int    // open
	Keys     int    // remembered

	Appends          uint64 // batches stored
	Records          uint64 // in them
	LineBytes        uint64 // in them
	Groups           uint64 // writes that stored them; Appends/Groups batches shared one
	Fsyncs           uint64
	Duplicates       uint64 // batches that AppendKeyed found stored
	DuplicateRecords uint64 // in them
	Full             uint64 // batches refused with ErrFull
	WriteErrors      uint64 // batches refused with another error of the disk
	SyncErrors       uint64 // fsyncs that failed
	PackedSegments   uint64
	PackedFrom       uint64 // bytes of them before
	PackedTo         uint64 // bytes of them afterwards
	DeletedSegments  uint64 // by retention
	ScrubbedSegments uint64 // read again
	DeletedRecords   uint64 // by retention, with their segments
	DroppedRecords   uint64 // by the retention of their tenants, from segments that stay
	Gaps             uint64 // that readers met
	MissedRecords    uint64 // in those gaps, summed over readers

	Oldest time.Time // when the oldest segment was begun; zero: there is none
	Newest time.Time // when something was written last; zero: likewise

	LastError     error // of the disk; nil: none since Open
	LastErrorTime time.Time
}

type counters struct {
	Stats
	lostSync error // the first fsync error, for Close
}

// Stats returns a snapshot. It never waits for the disk.
func (j *Journal) Stats() Stats {
	j.mu.Lock()
	defer j.mu.Unlock()
	st := j.counters.Stats
	st.First, st.Next = j.firstLocked(), j.next
	st.Segments, st.Bytes = len(j.segs), j.total
	if n := len(j.segs); n > 0 {
		st.Oldest, st.Newest = j.segs[0].begun, j.segs[n-1].written
	}
	st.Waiting, st.Unpacked = j.waitingLocked()
	j.keys.expire(j.keyTime())
	st.Keys = j.keys.n
	st.Synced = j.next
	for _, s := range j.syncer.dirty {
		if s.syncErr == nil && s.synced < s.end {
			st.Synced = s.synced
			break
		}
	}
	return st
}

func (j *Journal) note(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.noteLocked(err)
}

func (j *Journal) noteLocked(err error) {
	j.counters.LastError, j.counters.LastErrorTime = err, time.Now()
}
