package spool

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/recordlog"
)

// Segments are those of package recordlog: a frame is one batch of lines, without keys, and
// both its times are that of the append.
const (
	extSegment    = ".spool"
	segmentHeader = recordlog.HeaderSize
	frameHeader   = recordlog.FrameHeaderSize
)

type (
	UnsupportedError = recordlog.UnsupportedError
	Finding          = recordlog.Finding
)

type segment struct {
	line    uint64 // number of its first line, also its name
	end     uint64 // number after its last line, once it is given up
	id      uint64
	created time.Time
	size    int64     // bytes that are committed
	file    disk.File // nil until it is needed
	dirty   bool      // appended to since the last Sync
	syncErr error     // of its fsync, which is never called again
	guessed bool      // the number of lost lines is an estimate
	keep    int64     // where its lines end before a failed append that could not be cut; else 0
}

func segmentName(line uint64) string { return recordlog.Name(line, extSegment) }

func (s *Spool) path(name string) string { return filepath.Join(s.dir, name) }

// remove removes a file, if it is there.
func (s *Spool) remove(name string) error { return recordlog.Remove(s.o.Disk, s.path(name)) }

// createSegment makes the segment that begins with the next line.
func (s *Spool) createSegment() (*segment, error) {
	if !s.owns() {
		return nil, errGone
	}
	seg := &segment{line: s.next, id: recordlog.NewID(), created: time.Now(), size: segmentHeader, dirty: true}
	h := recordlog.Header{Kind: recordlog.SpoolSegment, ID: seg.id, First: seg.line, Created: seg.created.UnixNano(), Prev: seg.line}
	// A file of this name can only be left from a creation that failed.
	var err error
	if seg.file, err = recordlog.Create(s.o.Disk, s.path(segmentName(seg.line)), h, true); err != nil {
		return nil, err
	}
	s.segs = append(s.segs, seg)
	s.total += seg.size
	s.writing, s.stray = true, false
	return seg, nil
}

// limit returns the number after the last line of segment i.
func (s *Spool) limit(i int) uint64 {
	if i+1 < len(s.segs) {
		return s.segs[i+1].line
	}
	return s.next
}

// removeFirst gives up the oldest segment and its file. Files are removed in order even if
// the disk refuses one for a while, so that a crash leaves no gap.
func (s *Spool) removeFirst() {
	seg := s.segs[0]
	seg.end = s.limit(0)
	if len(s.segs) == 1 {
		s.writing = false
	}
	s.segs = append(s.segs[:0], s.segs[1:]...)
	if s.reading > 0 {
		s.reading--
	} else {
		s.pos = segmentHeader
		s.walk.Open(nil, "", 0)
		if len(s.segs) > 0 {
			s.since = s.segs[0].created
		}
	}
	if seg.file != nil {
		if err := seg.file.Close(); err != nil {
			s.fail(fmt.Errorf("close segment: %w", err))
		}
	}
	s.garbage = append(s.garbage, seg)
	s.sweep()
}

// sweep removes files that were given up. A stale cursor that cannot be written is
// removed first: the next Open would count the lines as lost.
func (s *Spool) sweep() {
	for len(s.garbage) > 0 && s.owns() {
		seg := s.garbage[0]
		if s.saved.file != nil && s.saved.line < seg.end && s.save(false) != nil {
			if err := s.remove(cursorName); err != nil {
				s.fail(fmt.Errorf("remove cursor: %w", err))
				return
			}
			s.forgetCursor()
		}
		if err := s.remove(segmentName(seg.line)); err != nil {
			s.fail(fmt.Errorf("remove segment: %w", err))
			return
		}
		s.total -= seg.size
		s.garbage = append(s.garbage[:0], s.garbage[1:]...)
	}
}

// open opens the file of seg.
func (s *Spool) open(seg *segment) error {
	if seg.file != nil {
		return nil
	}
	f, err := s.o.Disk.OpenFile(s.path(segmentName(seg.line)), os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("open segment: %w", err)
	}
	seg.file = f
	return nil
}
