package spool

import "time"

// Stats is a consistent snapshot of a Spool. Lines are counted from Open on; always
//
//	Recovered + Appended = Acked + Dropped.Total() + Lines
type Stats struct {
	Recovered uint64 // lines found by Open
	Appended  uint64 // lines that Append stored
	Acked     uint64 // lines settled by Ack
	Dropped   Drops
	Lines     uint64 // not settled yet

	Refused uint64 // lines that Append did not store; not in the ledger

	First uint64 // number of the oldest line that is not settled
	Next  uint64 // number of the next line to be appended; First + Lines unless DropOldest overtakes what is in flight

	Bytes    int64     // in segment files
	Unread   int64     // bytes of frames, headers included, that Next has not passed yet
	Segments int       // files
	Oldest   time.Time // append of the oldest line, at most a segment too early; zero when empty

	Damaged uint64 // places where something was damaged or missing

	LastError     error // of the disk, latest; nil if there was none
	LastErrorTime time.Time
}

// Drops counts lost lines by reason.
type Drops struct {
	Full    uint64 // gave way to newer ones, under DropOldest
	Old     uint64 // above MaxAge
	Damaged uint64 // not readable any more
}

// Total returns the number of lost lines.
func (d Drops) Total() uint64 { return d.Full + d.Old + d.Damaged }

// Stats returns the counters. It never waits for the disk.
func (s *Spool) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

// publish updates what Stats returns; op is held.
func (s *Spool) publish() {
	st := s.count
	st.First, st.Next = s.firstLine(), s.next
	st.Lines = s.next - s.at
	st.Oldest = s.since
	for _, out := range [...][]*Batch{s.out, s.orphans} {
		for _, b := range out {
			st.Lines += b.lines
		}
		if len(out) > 0 {
			st.Oldest = out[0].since
		}
	}
	if st.Lines == 0 {
		st.Oldest = time.Time{}
	}
	st.Bytes, st.Segments, st.Unread = s.total, len(s.segs), s.unread()
	s.mu.Lock()
	s.stats = st
	s.mu.Unlock()
}

// unread returns Stats.Unread: all bytes except those of segments up to where Next reads.
func (s *Spool) unread() int64 {
	if s.at == s.next {
		return 0
	}
	n := s.total - s.pos - segmentHeader*int64(len(s.segs)-s.reading-1)
	for _, seg := range s.garbage {
		n -= seg.size
	}
	for _, seg := range s.segs[:s.reading] {
		n -= seg.size
	}
	return n
}

func (s *Spool) fail(err error) {
	s.count.LastError, s.count.LastErrorTime = err, time.Now()
}

const maxFindings = 100

// Findings returns what was found since the last call, the first hundred.
func (s *Spool) Findings() []Finding {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.findings
	s.findings = nil
	return f
}

func (s *Spool) find(f Finding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.findings) < maxFindings {
		s.findings = append(s.findings, f)
	}
}
