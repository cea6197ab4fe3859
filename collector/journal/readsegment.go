package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sort"

	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/recordlog"
)

// enter opens the segment that has the cursor; false: not yet.
func (r *Reader) enter() (bool, error) {
	j := r.j
	j.mu.Lock()
	if r.next > j.next {
		to := j.next
		j.mu.Unlock()
		return false, r.gap(to, "records were lost in a crash or the journal was replaced")
	}
	if r.next == j.next {
		done := j.done
		j.mu.Unlock()
		if done {
			return false, io.EOF
		}
		return false, nil
	}
	at := sort.Search(len(j.segs), func(i int) bool { return j.segs[i].end > r.next })
	if at == len(j.segs) {
		to := j.next
		j.mu.Unlock()
		return false, r.gap(to, "no segment holds them")
	}
	s := j.segs[at]
	if s.first > r.next {
		reason := "a segment is missing"
		if at == 0 {
			reason = "deleted by retention or missing"
		}
		j.mu.Unlock()
		return false, r.gap(s.first, reason)
	}
	if r.tenant != nil && s.packed && !s.listed {
		j.mu.Unlock()
		j.list(s)
		return true, nil
	}
	if r.tenant != nil && !s.hasLocked(*r.tenant) {
		r.next = s.end
		j.mu.Unlock()
		return true, nil
	}
	if s.outsideLocked(r.minTime, r.maxTime) {
		r.next = s.end
		j.mu.Unlock()
		return true, nil
	}
	if a := s.ahead; a != nil && r.next < a.end && r.ahead {
		j.mu.Unlock()
		r.seg, r.end, r.packed = s, a.end, true
		r.walk.Open(bytes.NewReader(a.file), j.path(s.first, extOpen), int64(len(a.file)))
		r.walk.Expect(s.id)
		r.walk.Pos, r.walk.win.open = a.marks.seek(r.next), false
		return true, nil
	}
	pos, limit, end, sealed, created, marked := s.seekLocked(r.next), s.size, s.end, s.sealed, s.created, len(s.marks) > 0
	j.mu.Unlock()

	ext, other := extOpen, extSealed
	if sealed {
		ext, other = extSealed, extOpen
	}
	path := j.path(s.first, ext)
	f, err := j.fs.OpenFile(path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) { // sealed meanwhile
		path = j.path(s.first, other)
		f, err = j.fs.OpenFile(path, os.O_RDONLY, 0)
	}
	if err != nil {
		return r.enterFailed(s, err)
	}
	r.seg, r.file, r.end = s, f, end
	r.walk.Open(f, path, limit)
	h, err := r.walk.FileHeader(recordlog.JournalSegment)
	if unsupported := (*UnsupportedError)(nil); errors.As(err, &unsupported) {
		r.err = err
		return false, err
	}
	r.packed, r.created = h.Flags&flagPacked != 0, h.Created
	replaced := err == nil && h.Created != created
	if replaced { // between the two looks: pos is another file's
		if limit, err = framesEnd(f, path); err != nil {
			return false, errors.Join(fmt.Errorf("read journal: %w", err), r.leave())
		}
		pos, r.walk.Limit = segmentHeaderSize, limit
	}
	if sealed && !marked && !replaced && r.next > s.first {
		pos = r.seek(s, f, path)
	}
	r.walk.win.open = false
	r.walk.Pos = pos // a damaged header costs nothing, frames repeat the id
	return true, nil
}

// seekHere moves to the frame with the cursor, if that is in the file that is open and it is known where.
func (r *Reader) seekHere() bool {
	s := r.seg
	if s == nil || r.next < s.first || r.next >= r.end {
		return false
	}
	r.j.mu.Lock()
	defer r.j.mu.Unlock()
	if r.file == nil || s.created != r.created || len(s.marks) == 0 { // marks are of another file, or unknown
		return false
	}
	r.walk.Open(r.file, r.walk.Path(), r.walk.Limit) // what it holds was lent
	r.walk.Expect(s.id)
	r.walk.Pos, r.walk.win.open = s.seekLocked(r.next), false
	return true
}

// enterWindow enters the frame h at the walker's position, which has blocks, and moves past it.
// Of the blocks of other tenants it reads nothing.
func (r *Reader) enterWindow(h *recordlog.Frame) error {
	w := &r.walk
	if what := h.Unknown(); what != "" {
		return r.damagedBody(h, &UnsupportedError{File: w.Path(), Pos: w.Pos, What: what})
	}
	w.Lean(r.tenant != nil)
	head, err := w.Head(h)
	if err == nil {
		err = w.win.enter(h, head, r.next, r.tenant, w.Path(), w.Pos+frameHeaderSize, w.Block)
	}
	if recordlog.IsDamage(err) {
		w.Skip(h)
	}
	if err != nil {
		return r.damagedBody(h, err)
	}
	for i := range w.win.blocks {
		if b := &w.win.blocks[i]; b.others {
			r.seen.ByTenant.Add(1)
		} else if b.lost == "" {
			r.seen.read(b.lines)
		}
	}
	w.Pos += h.Size()
	return nil
}

// seek returns a position at or before the frame with the cursor in s, whose frame
// positions only the footer has.
func (r *Reader) seek(s *segment, f disk.File, path string) int64 {
	size, err := f.Size()
	if err != nil {
		return segmentHeaderSize
	}
	foot, err := recordlog.ReadFooter(f, path, size)
	r.j.mu.Lock()
	defer r.j.mu.Unlock()
	if err != nil || foot.ID != s.id || s.packed != r.packed || foot.FramesEnd() != s.size {
		return segmentHeaderSize
	}
	s.takeMarksLocked(foot)
	return s.seekLocked(r.next)
}

// framesEnd returns where the frames of a segment end.
func framesEnd(f disk.File, path string) (int64, error) {
	size, err := f.Size()
	if err != nil {
		return 0, err
	}
	if foot, err := recordlog.ReadFooter(f, path, size); err == nil {
		return foot.FramesEnd(), nil
	}
	return size, nil
}

// enterFailed handles an error of opening s.
func (r *Reader) enterFailed(s *segment, err error) (bool, error) {
	r.j.mu.Lock()
	gone, end := s.gone, s.end
	r.j.mu.Unlock()
	if gone {
		return true, nil // look again
	}
	if r.failures++; r.failures <= 2 {
		return false, fmt.Errorf("read journal: %w", err)
	}
	r.failures = 0
	return false, r.gap(end, fmt.Sprintf("segment cannot be opened: %v", err))
}

// extend adds what was committed since to what may be read, or leaves a finished segment;
// false: neither.
func (r *Reader) extend() (bool, error) {
	j, s := r.j, r.seg
	j.mu.Lock()
	size, end, finished, replaced := s.size, s.end, s.retired || j.done, s.packed && !r.packed
	j.mu.Unlock()
	switch {
	case r.file == nil && r.next >= r.end: // what comes next is in the file
		return true, r.leave()
	case replaced: // limit is the old file's, and may be short of its end
		return true, r.leave()
	case size > r.walk.Limit && !r.packed:
		r.walk.Limit, r.end = size, end
		return true, nil
	case !finished && r.next >= end:
		return false, nil
	}
	path := r.walk.Path()
	if err := r.leave(); err != nil {
		return false, err
	}
	if r.next < end {
		return false, r.gap(end, "segment "+path+" does not hold them")
	}
	return true, nil
}

// damaged moves to the next readable frame, and returns a Gap if records are lost.
func (r *Reader) damaged(err error) error {
	at := r.walk.Pos
	if !recordlog.IsDamage(err) {
		if r.failures++; r.failures <= 2 {
			return fmt.Errorf("read journal: %w", err)
		}
		r.failures = 0
		r.walk.Pos = r.walk.Limit
	} else {
		_ = r.walk.resync(r.next) // what cannot be read becomes a Gap
	}
	if r.walk.Pos < r.walk.Limit {
		h, err := r.walk.Header()
		if err == nil && h.First > r.next && h.First < r.end {
			return r.gap(h.First, fmt.Sprintf("bytes %d to %d of %s are damaged", at, r.walk.Pos-1, r.walk.Path()))
		}
		return nil
	}
	if r.end > r.next {
		return r.gap(r.end, fmt.Sprintf("%s is damaged from byte %d on", r.walk.Path(), at))
	}
	return nil
}

// damagedBody is damaged for the body of h.
func (r *Reader) damagedBody(h *recordlog.Frame, err error) error {
	var unsupported *UnsupportedError
	switch {
	case recordlog.IsDamage(err): // the walker is past it
		return r.gap(h.End(), fmt.Sprintf("frame before byte %d of %s is damaged", r.walk.Pos, r.walk.Path()))
	case errors.As(err, &unsupported):
		r.err = err
		return err
	}
	return r.damaged(err)
}

func (r *Reader) leave() error {
	if r.seg == nil {
		return nil
	}
	f := r.file
	if r.seg, r.file = nil, nil; f == nil {
		return nil
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("close segment: %w", err)
	}
	return nil
}
