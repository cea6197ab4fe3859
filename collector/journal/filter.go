package journal

import (
	"errors"
	"io"
	"os"
	"sort"

	"github.com/rollway/rollway/collector/filters"
	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/recordlog"
)

// Excluded is offsets of records that cannot have what a test asks for.
type Excluded struct {
	From, To uint64
	Frames   int
}

// Exclude asks the filters of the segment that has the record at offset. It returns the
// segment's range of offsets, or that of what no segment has, and the parts of it that do not pass t,
// in ascending order. What is packed of the segment that is being written is a range of its own. A segment without filters, and one that has no record from minTime to maxTime, has no such
// parts. Without t it tells the segment's range alone. The error is of reading, or that the filters are damaged, or that
// ended, which may be nil and is asked before each read, returned true; nothing is excluded then. What is read is looked at in turns of turn.
func (j *Journal) Exclude(offset uint64, minTime, maxTime int64, t *filters.Test, turn Turn, ended func() bool) (first, end uint64, parts []Excluded, err error) {
	j.mu.Lock()
	s, first, end := j.aroundLocked(offset)
	var a *aheadPart
	if s != nil {
		a = s.ahead
	}
	none := t == nil || s == nil || a == nil && !s.packed || s.outsideLocked(minTime, maxTime)
	j.mu.Unlock()
	switch {
	case none:
		return first, end, nil, nil
	case a != nil && offset >= a.end:
		return a.end, end, nil, nil
	case a != nil:
		turn.Begin()
		defer turn.End()
		return first, a.end, a.excluded(t), nil
	}
	path := j.path(s.first, extSealed)
	f, err := j.fs.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return first, end, nil, err
	}
	defer f.Close() // only read from
	foot, err := footerOf(f, path)
	if err != nil || foot.ID != s.id {
		return first, end, nil, err
	}
	section := foot.Section(recordlog.FiltersSection)
	turn.Begin()
	defer turn.End()
	frames, err := filters.Excluded(outside{io.NewSectionReader(f, section.Pos, section.Len), turn, ended}, section.Len, t)
	for _, m := range foot.Marks {
		i := sort.Search(len(frames), func(i int) bool { return frames[i] >= m.First })
		if i == len(frames) || frames[i] != m.First {
			continue
		}
		parts = appendExcluded(parts, m.First, m.First+uint64(m.Records))
	}
	return first, end, parts, err
}

// appendExcluded appends a frame to parts, or to the last of them if it follows that.
func appendExcluded(parts []Excluded, from, to uint64) []Excluded {
	if n := len(parts); n > 0 && parts[n-1].To == from {
		parts[n-1].To, parts[n-1].Frames = to, parts[n-1].Frames+1
		return parts
	}
	return append(parts, Excluded{from, to, 1})
}

// A Turn is what work on a processor is done in: see admission.Turn.
type Turn interface {
	Begin()
	End()
}

// outside reads outside of a turn, until it has ended.
type outside struct {
	io.ReaderAt
	turn  Turn
	ended func() bool
}

var errEnded = errors.New("journal: nobody waits for what is read")

func (o outside) ReadAt(b []byte, at int64) (int, error) {
	o.turn.End()
	defer o.turn.Begin()
	if o.ended != nil && o.ended() {
		return 0, errEnded
	}
	return o.ReaderAt.ReadAt(b, at)
}

// filtersOf returns the filters of a packed segment, if they are sound.
func filtersOf(f disk.File, path string) ([]byte, error) {
	foot, err := footerOf(f, path)
	if recordlog.IsDamage(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	section := foot.Section(recordlog.FiltersSection)
	b := make([]byte, section.Len)
	if n, err := f.ReadAt(b, section.Pos); n < len(b) {
		return nil, err
	}
	if recordlog.Checksum(b) != section.Sum {
		return nil, nil
	}
	return b, nil
}
