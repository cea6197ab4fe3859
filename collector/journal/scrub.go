package journal

import (
	"errors"
	"io/fs"
	"sort"
	"time"

	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/recordlog"
)

// scrubRate is how many bytes a second are read at least, while a segment is read.
const scrubRate = 8 << 20

// scrubbed is how far the sealed segments were read again; guarded by Journal.mu. The
// history has it.
type scrubbed struct {
	Began time.Time // the current round
	Next  uint64    // segments before this offset were read in it
}

// scrub reads each sealed segment once in Options.Scrub until stop is closed. The segments
// of a round are spread over that time.
func (j *Journal) scrub() {
	for {
		s, rate, wait := j.nextScrub(time.Now())
		if s == nil {
			if j.pause(min(wait, time.Minute)) != nil {
				return
			}
			continue
		}
		findings, err := j.scrubSegment(s, rate)
		switch {
		case errors.Is(err, fs.ErrClosed):
			return
		case err != nil: // of the system, not of the segment
			j.note(err)
			if j.pause(time.Minute) != nil {
				return
			}
			continue
		}
		for _, f := range findings {
			j.keep(f)
		}
		j.mu.Lock()
		j.scrubbed.Next = s.first + 1
		j.counters.ScrubbedSegments++
		j.changedLocked()
		j.mu.Unlock()
	}
}

// nextScrub returns the segment to read now and at how many bytes a second, or how long to
// wait.
func (j *Journal) nextScrub(now time.Time) (s *segment, rate int64, wait time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.moved != nil {
		return nil, 0, time.Minute
	}
	at := &j.scrubbed
	if at.Began.IsZero() || at.Began.After(now) { // the clock was set back
		at.Began = now
	}
	n := sort.Search(len(j.segs), func(i int) bool { return !j.segs[i].settled })
	i := sort.Search(n, func(i int) bool { return j.segs[i].first >= at.Next })
	for ; i < n && !j.segs[i].sealed; i++ {
	}
	if i >= n { // a round that was late is read to its end all the same
		if wait := at.Began.Add(j.o.Scrub).Sub(now); wait > 0 {
			return nil, 0, wait
		}
		at.Began, at.Next = now, 0
		return nil, 0, 0
	}
	due := at.Began.Add(time.Duration(float64(j.o.Scrub) * float64(i) / float64(n)))
	if wait := due.Sub(now); wait > 0 {
		return nil, 0, wait
	}
	return j.segs[i], max(scrubRate, int64(2*float64(j.total)/j.o.Scrub.Seconds())), 0
}

// scrubSegment reads s, and returns what is wrong with it. An error is one that says nothing
// about s.
func (j *Journal) scrubSegment(s *segment, rate int64) ([]Finding, error) {
	j.mu.Lock()
	c := candidate{first: s.first, ext: extSealed, written: s.written}
	end := s.end
	j.mu.Unlock()
	sc, err := c.read(slowly{FS: j.fs, j: j, rate: rate}, j.dir, end, 0)
	j.mu.Lock()
	gone := s.gone
	j.mu.Unlock()
	switch {
	case gone:
		return nil, nil
	case errors.Is(err, fs.ErrClosed), disk.IsExhausted(err):
		return nil, err
	case errors.Is(err, fs.ErrNotExist):
		return []Finding{{Kind: recordlog.Missing, File: c.name(), From: c.first, To: end, Detail: "removed while the journal was open"}}, nil
	case err != nil:
		return []Finding{unreadable(c, err)}, nil
	}
	var r AuditReport
	r.add(c, &sc)
	if sc.Sound && s.id != 0 && sc.Header.ID != s.id {
		r.find(Finding{Kind: recordlog.Swapped, File: c.name()})
	}
	if sc.End < end {
		r.find(Finding{Kind: recordlog.Missing, File: c.name(), From: sc.End, To: end, Detail: "at its end"})
	}
	return r.Findings, nil
}

// slowly is a file system whose files are read at a rate, and leave nothing in memory.
type slowly struct {
	disk.FS
	j    *Journal
	rate int64
}

func (d slowly) OpenFile(name string, flag int, perm fs.FileMode) (disk.File, error) {
	f, err := d.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &slowFile{File: f, d: d}, nil
}

// slowFile is used by one goroutine.
type slowFile struct {
	disk.File
	d    slowly
	read int64 // since the last pause
}

func (f *slowFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	disk.Forget(f.File, off, int64(n))
	if f.read += int64(n); f.read >= 1<<20 {
		if pauseErr := f.d.j.pause(time.Duration(f.read) * time.Second / time.Duration(f.d.rate)); pauseErr != nil {
			return 0, pauseErr
		}
		f.read = 0
	}
	return n, err
}
