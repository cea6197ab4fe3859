package spool

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/recordlog"
)

// recover fills s from the folder. Nothing runs concurrently.
func (s *Spool) recover() error {
	if err := s.readCursor(); err != nil {
		return err
	}
	start := s.saved.line
	entries, err := s.o.Disk.List(s.dir)
	if err != nil {
		return fmt.Errorf("list folder: %w", err)
	}
	for _, e := range entries { // by name, and so by first line
		line, ext, ok := recordlog.ParseName(e.Name)
		if !ok || ext != extSegment {
			continue
		}
		seg, err := s.recoverSegment(e.Name, line, e.Size)
		if err != nil {
			return err
		}
		if seg != nil {
			s.segs = append(s.segs, seg)
			s.total += seg.size
		}
	}
	for len(s.segs) > 0 { // until the last one holds something
		if kept, err := s.recoverLast(); err != nil {
			return err
		} else if kept {
			break
		}
	}
	s.at = start
	s.ends = slices.DeleteFunc(slices.Clone(s.saved.ends[:]), func(end uint64) bool { return end <= start })
	if s.next < start { // a power cut took lines that were settled
		s.next = start
		s.writing = false
	}
	if s.next < s.saved.next { // lines that no file has; Next counts them where they should be
		s.next = s.saved.next
		s.writing = false
	}
	for len(s.segs) > 0 && s.limit(0) <= s.at {
		s.removeFirst()
	}
	first := s.next
	if len(s.segs) > 0 {
		first = s.segs[0].line
		s.since = s.segs[0].created
	}
	s.count.Recovered = s.next - s.at
	if missing := first - min(first, s.at); missing > 0 {
		s.at = first
		if s.saved.count > 0 {
			s.count.Dropped.Damaged += missing
			s.count.Damaged++
			s.find(Finding{Kind: recordlog.Damaged, File: segmentName(s.saved.cursor.file), Lines: missing,
				Detail: "the file is gone, or was cut; after a power cut its lines may have been delivered"})
			s.save(true) // an error is counted
		} else {
			s.count.Recovered -= missing // settled, as far as is known
			if s.saved.file == nil {
				s.find(Finding{Kind: recordlog.CursorLost, File: cursorName, Detail: fmt.Sprintf("the file is gone; lines below %d are taken for settled", first)})
			}
		}
	}
	return nil
}

// recoverSegment returns the segment in the file of that name, or nil.
func (s *Spool) recoverSegment(name string, line uint64, size int64) (*segment, error) {
	seg := &segment{line: line, size: size, dirty: true} // perhaps never synced
	if err := s.open(seg); errors.Is(err, disk.ErrNotFile) {
		s.find(Finding{Kind: recordlog.SetAside, File: name, Detail: err.Error()})
		s.count.Damaged++
		return nil, s.setAside(name)
	} else if err != nil {
		return nil, err
	}
	w := recordlog.Walker{Window: chunkBytes}
	w.Open(seg.file, s.path(name), size)
	h, err := w.FileHeader(recordlog.SpoolSegment)
	switch {
	case err == nil && h.First == line:
		seg.id, seg.created = h.ID, time.Unix(0, h.Created)
		return seg, nil
	case err != nil && !recordlog.IsDamage(err):
		return nil, errors.Join(err, seg.file.Close())
	}
	// A frame has what the header would tell.
	w.Open(seg.file, s.path(name), size)
	w.Pos = -1
	var f recordlog.Frame
	_ = w.Resync(func(h *recordlog.Frame) bool { f = *h; return h.First >= line })
	if w.Pos < size {
		seg.id, seg.created = f.ID, time.Unix(0, f.MinTime)
		return seg, nil
	}
	lines := w.LineEnds(0)
	zero := w.Zero()
	if err := seg.file.Close(); err != nil {
		return nil, err
	}
	if size < segmentHeader || lines == 0 && zero {
		s.find(Finding{Kind: recordlog.EmptyRemoved, File: name, Bytes: size})
		return nil, s.remove(name)
	}
	s.find(Finding{Kind: recordlog.SetAside, File: name, Bytes: size, Lines: lines, Estimated: true})
	s.count.Damaged++
	return nil, s.setAside(name)
}

func (s *Spool) setAside(name string) error {
	_, err := recordlog.MoveAside(s.o.Disk, s.dir, name)
	return err
}

// recoverLast reads the last segment frame by frame to its end, cuts an unfinished append,
// and writes on it if possible. It reports false, and removes the segment, if that has no
// batch.
func (s *Spool) recoverLast() (kept bool, err error) {
	i := len(s.segs) - 1
	seg := s.segs[i]
	name := segmentName(seg.line)
	w := recordlog.Walker{Window: chunkBytes}
	w.Open(seg.file, s.path(name), seg.size)
	w.Expect(seg.id)
	s.next = seg.line
	sound := true
	for w.Pos < seg.size {
		pos := w.Pos
		h, err := w.Header()
		if err == nil && h.First < s.next {
			h, err = recordlog.Frame{}, recordlog.ErrDamaged
		}
		header := err == nil
		if header {
			_, err = w.Body(&h)
		}
		switch {
		case header && (err == nil || recordlog.IsDamage(err)): // Next reports a damaged body
			sound = sound && err == nil && h.First == s.next
			s.next = h.End()
		case header:
			sound = false
			s.next = h.End()
			w.Skip(&h)
		case !recordlog.IsDamage(err): // where the lines end must be known
			return false, err
		case h.Records == 0:
			_ = w.Resync(func(f *recordlog.Frame) bool { return f.First >= s.next })
			if w.Pos < seg.size {
				sound = false
				continue
			}
			if lines := w.LineEnds(pos); lines > 0 {
				s.next += lines // Next counts and reports them
				seg.guessed = true
				return true, nil
			}
			fallthrough
		default:
			if s.next < s.saved.next { // it was cut; Next counts what is lost
				return true, nil
			}
			// An append that was not finished.
			s.find(Finding{Kind: recordlog.TornTail, File: name, Pos: pos, Bytes: seg.size - pos, Lines: uint64(h.Records)})
			s.total -= seg.size - pos
			seg.size = pos
			return s.resume(seg, sound, true), nil
		}
	}
	return s.resume(seg, sound, false), nil
}

// resume makes seg, the last segment, the current one if possible. It removes an empty one.
func (s *Spool) resume(seg *segment, sound, cut bool) (kept bool) {
	if s.next == seg.line {
		s.find(Finding{Kind: recordlog.EmptyRemoved, File: segmentName(seg.line), Bytes: seg.size})
		s.segs = s.segs[:len(s.segs)-1]
		s.total -= seg.size
		_ = seg.file.Close()
		_ = s.remove(segmentName(seg.line)) // if not, the next segment takes its place
		return false
	}
	if !sound || seg.size >= s.o.SegmentBytes {
		return true // an unfinished append after its lines is not read
	}
	if cut {
		if err := seg.file.Truncate(seg.size); err != nil {
			s.fail(fmt.Errorf("cut torn tail: %w", err))
			return true
		}
	}
	s.writing = true
	return true
}
