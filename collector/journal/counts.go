package journal

import (
	"math"
	"slices"
	"time"

	"github.com/rollway/rollway/internal/recordlog"
)

// Count is how many records of a level are in one step of time.
type Count = recordlog.Count

// CountStep is the shortest step of [Counts]. Others are its multiples by powers of two.
const CountStep = time.Minute

// maxHeldCounts bounds the counts of footers that are kept in memory, 16 bytes each.
const maxHeldCounts = 512 << 10

// heldCounts are the counts that were read, of whole segments.
type heldCounts struct {
	segs []*segment // that have counts, in the order in which they were read
	n    int        // counts
}

// Counts tell how many records a segment has, without its lines. They are immutable.
type Counts struct {
	First, End       uint64  // offsets of the segment
	Records          uint64  // that a reader would find there; retention may have deleted others
	MinTime, MaxTime int64   // no record is older or newer, unix nanoseconds
	Step             int64   // of Steps, in nanoseconds
	Steps            []Count // in the order of steps and levels
	Tenant           *string // whose all records are; nil: they may be of several
}

// Counts returns the counts of the segment that has offset, and which offsets it has, or what no
// segment has. They are exact: of each record the journal knows the step and the level, which its
// line has in canonical form. It returns nil for a segment of which it does not know that, or in
// which damage was found: only a [Reader] tells what is there. Counts of a segment without a record
// from minTime to maxTime have no records.
func (j *Journal) Counts(offset uint64, minTime, maxTime int64) (c *Counts, first, end uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s, first, end := j.aroundLocked(offset)
	switch {
	case s == nil:
		return nil, first, end
	case s.outsideLocked(minTime, maxTime):
		return &Counts{First: first, End: end}, first, end
	case s.sealed && s.footer > 0 && s.counts == nil:
		j.findCountsLocked(s)
	}
	if c = s.counts; c == nil || c.End != end || j.suspectLocked(s) {
		return nil, first, end
	}
	return c, first, end
}

// suspectLocked reports whether something was found about s that a reader would tell.
func (j *Journal) suspectLocked(s *segment) bool {
	if s.suspect || len(j.findings.kept) >= maxFindings {
		return true
	}
	if len(j.findings.kept)+len(j.findings.acked)+len(j.recovery.Findings) == 0 {
		return false
	}
	name := segmentName(s.first, extSealed)
	for _, list := range [][]Finding{j.findings.kept, j.findings.acked, j.recovery.Findings} {
		if slices.ContainsFunc(list, func(f Finding) bool { return f.File == name && !f.Harmless() }) {
			return true
		}
	}
	return false
}

// findCountsLocked takes the counts of s from its footer, if they are exact. It unlocks j.mu
// meanwhile.
func (j *Journal) findCountsLocked(s *segment) {
	j.mu.Unlock()
	foot, err := j.footer(s)
	j.mu.Lock()
	if err != nil || s.counts != nil || s.gone || foot.ID != s.id || foot.First != s.first || foot.End != s.end || foot.FramesEnd() != s.size {
		return
	}
	if s.counts = exactCounts(foot, s.packed); s.counts == nil {
		return
	}
	h := &j.counts
	h.segs = append(h.segs, s)
	for h.n += len(s.counts.Steps); h.n > maxHeldCounts && h.segs[0] != s; {
		j.dropCountsLocked(h.segs[0])
	}
}

// dropCountsLocked forgets the counts of s, whose file is another one now, or to make room.
func (j *Journal) dropCountsLocked(s *segment) {
	if s.counts == nil {
		return
	}
	j.counts.n -= len(s.counts.Steps)
	s.counts = nil
	j.counts.segs = slices.DeleteFunc(j.counts.segs, func(o *segment) bool { return o == s })
}

// exactCounts returns the counts of a footer, or nil if they do not tell all of each record.
func exactCounts(foot *recordlog.Footer, packed bool) *Counts {
	next, counted := foot.First, uint64(0)
	for _, m := range foot.Marks {
		if m.First != next { // damage has left out what was between
			return nil
		}
		next += uint64(m.Records)
	}
	for _, c := range foot.Counts {
		if counted += uint64(c.Records); c.Level == recordlog.NoLevel {
			return nil
		}
	}
	clamped := foot.MinTime == math.MinInt64 || foot.MaxTime == math.MaxInt64 // lines may have times beyond
	if next != foot.End || counted != foot.Records || clamped {
		return nil
	}
	c := &Counts{First: foot.First, End: foot.End, Records: foot.Records, MinTime: foot.MinTime, MaxTime: foot.MaxTime, Step: foot.Step, Steps: foot.Counts}
	switch {
	case !packed:
	case len(foot.Tenants) == 0:
		c.Tenant = new(string)
	default:
		for i := range foot.Tenants {
			if t := &foot.Tenants[i]; t.Records == foot.Records {
				c.Tenant = &t.Name
			}
		}
	}
	return c
}
