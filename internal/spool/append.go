package spool

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rollway/rollway/internal/recordlog"
)

// maxFrame bounds the lines of one frame in bytes, unless a single line is longer.
const maxFrame = 256 << 10

// append stores lines as one or more frames of one segment, or nothing.
func (s *Spool) append(lines []byte) error {
	now := time.Now()
	if s.look(now); s.gone {
		return errGone
	}
	size := int64(len(lines)) + frameHeader*int64(recordlog.Pieces(lines, maxFrame))
	if err := s.makeRoom(size, now); err != nil {
		return err
	}
	seg, err := s.current(size)
	if err != nil {
		return err
	}
	pos, next := seg.size, s.next
	for rest := lines; len(rest) > 0; {
		piece := rest[:recordlog.Piece(rest, maxFrame)]
		rest = rest[len(piece):]
		h := recordlog.Frame{
			ID: seg.id, First: next, MinTime: now.UnixNano(), MaxTime: now.UnixNano(),
			Records: recordlog.LineCount(piece), Unpacked: len(piece),
		}
		if err := s.writeFrame(seg, pos, &h, piece); err != nil {
			return errors.Join(err, s.rollBack(seg))
		}
		pos += h.Size()
		next = h.End()
	}
	if s.next == s.at {
		s.since = now
	}
	s.total += pos - seg.size
	seg.size, seg.dirty = pos, true
	s.next = next
	if now.Sub(s.saved.time) >= saveEvery {
		s.save(true) // an error is counted
	}
	return nil
}

func (s *Spool) writeFrame(seg *segment, pos int64, h *recordlog.Frame, lines []byte) error {
	s.buf = append(append(s.buf[:0], make([]byte, frameHeader)...), lines...)
	h.Put(s.buf)
	if _, err := seg.file.WriteAt(s.buf, pos); err != nil {
		return fmt.Errorf("write batch: %w", err)
	}
	if cap(s.buf) > 4*maxFrame {
		s.buf = nil
	}
	return nil
}

// rollBack removes what a failed append wrote to seg, the current segment.
func (s *Spool) rollBack(seg *segment) error {
	if seg.size == segmentHeader { // it was made for this append
		s.writing = false
		s.segs = s.segs[:len(s.segs)-1]
		s.total -= seg.size
		err := s.remove(segmentName(seg.line))
		s.stray = err != nil
		return errors.Join(err, seg.file.Close())
	}
	if err := seg.file.Truncate(seg.size); err != nil {
		s.writing = false
		seg.keep = seg.size
		if size, sizeErr := seg.file.Size(); sizeErr == nil { // what is left over takes room too
			s.total += size - seg.size
			seg.size = size
		}
		return fmt.Errorf("roll back: %w", err)
	}
	return nil
}

// rollBackAgain removes what rollBack could not, unless a new segment hides it.
func (s *Spool) rollBackAgain() error {
	if s.stray && s.owns() {
		if err := s.remove(segmentName(s.next)); err != nil {
			return fmt.Errorf("roll back: %w", err)
		}
		s.stray = false
	}
	if len(s.segs) == 0 {
		return nil
	}
	if seg := s.segs[len(s.segs)-1]; seg.keep > 0 {
		if err := seg.file.Truncate(seg.keep); err != nil {
			return fmt.Errorf("roll back: %w", err)
		}
		s.total -= seg.size - seg.keep
		seg.size, seg.keep, seg.dirty = seg.keep, 0, true
	}
	return nil
}

func (s *Spool) current(size int64) (*segment, error) {
	if s.writing {
		if seg := s.segs[len(s.segs)-1]; seg.size == segmentHeader || seg.size+size <= s.o.SegmentBytes {
			return seg, nil
		}
		s.writing = false
	}
	return s.createSegment()
}

// makeRoom makes sure that size more bytes stay within MaxBytes.
func (s *Spool) makeRoom(size int64, now time.Time) error {
	size += segmentHeader // a new segment may be due
	over := func() bool { return s.total+size > s.o.MaxBytes }
	s.sweep()
	if over() {
		s.removeSettled(true)
	}
	if over() && s.o.MaxAge > 0 {
		for len(s.segs) > 1 && now.Sub(s.segs[1].created) > s.o.MaxAge && over() {
			s.dropFirst(&s.count.Dropped.Old)
		}
	}
	if s.o.Full == DropOldest && size <= s.o.MaxBytes {
		for over() && len(s.segs) > 0 {
			s.dropFirst(&s.count.Dropped.Full)
		}
	}
	if over() {
		return fmt.Errorf("%w: %d bytes are there, %d more would be above the bound of %d", ErrFull, s.total, size, s.o.MaxBytes)
	}
	return nil
}

// dropFirst drops the oldest segment and counts its lines, except those in flight, which
// stay in memory until they are settled.
func (s *Spool) dropFirst(reason *uint64) {
	end := s.limit(0)
	if s.at < end {
		*reason += end - s.at
		s.at = end
		s.bad = badPlace{}
	}
	for len(s.out) > 0 && s.out[0].end <= end {
		s.orphans = append(s.orphans, s.out[0])
		s.out = slices.Delete(s.out, 0, 1)
		s.passSettled()
	}
	s.save(false) // an error is counted
	s.removeFirst()
}
