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
	at := sort.Search(len(j.segs), func(i int) bool { return j.segs[i].end > offset })
	if at > 0 {
		first = j.segs[at-1].end
	}
	if at == len(j.segs) {
		return first, math.MaxUint64
	}
	s := j.segs[at]
	switch {
	case s.first > offset:
		return first, s.first
	case s.retired && s.timed && (s.maxTime < minTime || s.minTime > maxTime):
		return s.first, s.end
	}
	j.findMarksLocked(s)
	first, end = s.first, s.end
	at = sort.Search(len(s.marks), func(i int) bool { return s.marks[i].first > offset })
	if at = max(at-1, 0) / spanMarks * spanMarks; at > 0 {
		first = s.marks[at].first
	}
	if at += spanMarks; at < len(s.marks) {
		end = s.marks[at].first
	}
	return first, end
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
