package journal

import (
	"math"
	"sort"
)

// spanMarks is how many marks one span has. Of a packed segment each has about packBytes of lines,
// of another one markStep or markBytes of the file.
const spanMarks = 2

// Span returns the range of offsets around offset that a reader is best given as one piece of
// work: one or two MiB of the lines of a segment, a whole segment that has no record from minTime to
// maxTime (as in [Reader.SetTimeRange]), or what no segment has. Spans begin where frames do and
// leave nothing out; the last one ends at [math.MaxUint64]. What has been appended, packed or
// deleted since changes them: a caller goes on from where its last span ended.
func (j *Journal) Span(offset uint64, minTime, maxTime int64) (first, end uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s, first, end := j.aroundLocked(offset)
	if s == nil || s.outsideLocked(minTime, maxTime) {
		return first, end
	}
	j.findMarksLocked(s)
	first, end, marks := s.first, s.end, s.marks
	if a := s.ahead; a != nil && offset < a.end {
		end, marks = a.end, a.marks
	} else if a != nil {
		first = a.end
	}
	at := sort.Search(len(marks), func(i int) bool { return marks[i].first > offset })
	if at = max(at-1, 0) / spanMarks * spanMarks; at > 0 {
		first = max(first, marks[at].first)
	}
	if at += spanMarks; at < len(marks) {
		end = marks[at].first
	}
	return first, end
}

// aroundLocked returns the segment that has the record at offset, and its range of offsets; nil: no
// segment has it, nor others of that range.
func (j *Journal) aroundLocked(offset uint64) (s *segment, first, end uint64) {
	at := sort.Search(len(j.segs), func(i int) bool { return j.segs[i].end > offset })
	if at > 0 {
		first = j.segs[at-1].end
	}
	switch {
	case at == len(j.segs):
		return nil, first, math.MaxUint64
	case j.segs[at].first > offset:
		return nil, first, j.segs[at].first
	}
	return j.segs[at], j.segs[at].first, j.segs[at].end
}

// outsideLocked reports whether no record of s is from minTime to maxTime, and none will be.
func (s *segment) outsideLocked(minTime, maxTime int64) bool {
	return s.retired && s.timed && (s.maxTime < minTime || s.minTime > maxTime)
}

// findMarksLocked takes the marks of s from its footer, if it has none. It unlocks j.mu
// meanwhile.
func (j *Journal) findMarksLocked(s *segment) {
	if !s.sealed || len(s.marks) > 0 {
		return
	}
	j.mu.Unlock()
	foot, err := j.footer(s)
	j.mu.Lock()
	if err == nil && len(s.marks) == 0 && foot.ID == s.id && foot.FramesEnd() == s.size {
		s.takeMarksLocked(foot)
	}
}
