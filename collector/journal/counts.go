package journal

import (
	"cmp"
	"math"
	"os"
	"slices"
	"sort"
	"time"

	"github.com/rollway/rollway/internal/recordlog"
)

// Count is how many records of a level are in one step of time.
type Count = recordlog.Count

// CountStep is the shortest step of [Counts]. Others are its multiples by powers of two, hours, or
// all times.
const CountStep = time.Minute

// grains are the steps in which counts are kept in memory: all times, hours, and the footer's own.
var grains = [...]int64{math.MaxInt64, int64(time.Hour), 1}

const (
	// maxHeldCounts bounds the counts of each grain that are kept, 16 bytes each.
	maxHeldCounts = 256 << 10
	// maxPieceCounts bounds the counts of a piece of a segment that is not sealed.
	maxPieceCounts = 2 << 10
)

// segmentCounts are the counts of a segment, of each grain.
type segmentCounts [len(grains)]*Counts

// heldCounts are the counts of one grain that were read, of whole segments.
type heldCounts struct {
	segs []*segment // that have counts, in the order in which they were read
	n    int        // counts
}

// Counts tell how many records a segment has, or a piece of one, without its lines. They are
// immutable.
type Counts struct {
	First, End       uint64  // offsets
	Records          uint64  // that a reader would find there; retention may have deleted others
	MinTime, MaxTime int64   // no record is older or newer, unix nanoseconds
	Step             int64   // of Steps, in nanoseconds
	Steps            []Count // in the order of steps and levels
	Tenant           *string // whose all records are; nil: they may be of several
}

// Counts returns the counts of the segment that has offset, or of a piece of it while it is not
// sealed, and which offsets that has, or what no segment has. They are exact: of each record the
// journal knows the step and the level, which its line has in canonical form. It returns nil for what
// it does not know that of, or in which damage was found: only a [Reader] tells what is there. Counts
// of a segment without a record from minTime to maxTime have no records. The counts' steps are the
// longest that there are which divide step, where 0 means all times, or those of CountStep.
func (j *Journal) Counts(offset uint64, minTime, maxTime int64, step time.Duration) (c *Counts, first, end uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s, first, end := j.aroundLocked(offset)
	grain := len(grains) - 1
	for g := grain; g >= 0; g-- {
		if step == 0 || int64(step)%grains[g] == 0 {
			grain = g
		}
	}
	switch {
	case s == nil:
		return nil, first, end
	case s.outsideLocked(minTime, maxTime):
		return &Counts{First: first, End: end}, first, end
	case !s.sealed:
		c, first, end = j.pieceLocked(s, offset)
	default:
		if s.counts[grain] == nil && s.footer > 0 {
			j.findCountsLocked(s)
		}
		c = s.counts[grain]
	}
	if c == nil || c.End != end || j.suspectLocked(s) {
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
	all, packed := s.counts, s.packed
	j.mu.Unlock()
	foot, err := j.footer(s)
	var own *Counts
	if err == nil {
		own = exactCounts(foot, packed)
	}
	for g := range all {
		if all[g] == nil {
			all[g] = own.in(grains[g])
		}
	}
	j.mu.Lock()
	if own == nil || packed != s.packed || s.gone || foot.ID != s.id || foot.First != s.first || foot.End != s.end || foot.FramesEnd() != s.size {
		return
	}
	for g, c := range all {
		if s.counts[g] != nil {
			continue
		}
		h := &j.counts[g]
		s.counts[g], h.segs = c, append(h.segs, s)
		for h.n += c.size(); h.n > maxHeldCounts && h.segs[0] != s; {
			j.dropGrainLocked(g, h.segs[0])
		}
	}
}

// size is what c takes, in counts.
func (c *Counts) size() int { return len(c.Steps) + 8 }

// dropCountsLocked forgets the counts of s, whose file is another one now.
func (j *Journal) dropCountsLocked(s *segment) {
	for g := range grains {
		j.dropGrainLocked(g, s)
	}
}

func (j *Journal) dropGrainLocked(g int, s *segment) {
	if s.counts[g] == nil {
		return
	}
	h := &j.counts[g]
	h.n -= s.counts[g].size()
	if s.counts[g] = nil; h.segs[0] == s {
		h.segs = h.segs[1:]
		return
	}
	h.segs = slices.DeleteFunc(h.segs, func(o *segment) bool { return o == s })
}

// in returns c in longer steps, if its own divide them.
func (c *Counts) in(step int64) *Counts {
	if c == nil || step != math.MaxInt64 && step%c.Step != 0 {
		return c
	}
	sums := make(map[Count]uint32)
	for _, k := range c.Steps {
		sums[Count{Step: floorDiv(k.Step*c.Step, step), Level: k.Level}] += k.Records
	}
	w := *c
	w.Step, w.Steps = step, listCounts(sums)
	return &w
}

// listCounts returns counts in the order in which a footer has them.
func listCounts(sums map[Count]uint32) []Count {
	list := make([]Count, 0, len(sums))
	for c, n := range sums {
		c.Records = n
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b Count) int { return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.Level, b.Level)) })
	return list
}

// pieceLocked returns the counts of the piece of s that has offset: what is between two marks. It
// reads a piece once, and unlocks j.mu meanwhile. The last one may still grow, and has no counts.
func (j *Journal) pieceLocked(s *segment, offset uint64) (c *Counts, first, end uint64) {
	at := sort.Search(len(s.marks), func(i int) bool { return s.marks[i].first > offset }) - 1
	if at < 0 || s.marks[at].pos < segmentHeaderSize {
		return nil, s.first, s.end
	}
	if at == len(s.marks)-1 {
		return nil, s.marks[at].first, s.end
	}
	from, to := s.marks[at], s.marks[at+1]
	if at >= len(s.pieces) || s.pieces[at] == nil {
		j.mu.Unlock()
		c, err := j.countFrames(s, from, to)
		j.mu.Lock()
		if err != nil || s.sealed {
			return nil, from.first, to.first
		}
		s.pieces = append(s.pieces, make([]*Counts, max(0, at+1-len(s.pieces)))...)
		s.pieces[at] = c
	}
	return s.pieces[at], from.first, to.first
}

// countFrames returns the counts of the frames of s from one mark to another; without offsets, if
// they are not exact or many.
func (j *Journal) countFrames(s *segment, from, to mark) (*Counts, error) {
	path := j.path(s.first, extOpen)
	f, err := j.fs.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read from
	var w walker
	w.Open(f, path, to.pos)
	w.Expect(s.id)
	w.Pos = from.pos
	sum := newSummary(s.id, from.first)
	if err := sum.read(&w, func() {}); err != nil {
		return nil, err
	}
	sum.flush()
	sum.foot.Counts = listCounts(sum.counts)
	c := exactCounts(&sum.foot, false)
	if c == nil || len(c.Steps) > maxPieceCounts {
		c = new(Counts)
	}
	return c, nil
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
