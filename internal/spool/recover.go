package spool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/rollway/rollway/internal/disk"
)

// recover fills s from the folder. Nothing runs concurrently.
func (s *Spool) recover() error {
	if err := s.readCursor(); err != nil {
		return err
	}
	start := position{s.saved.line, s.saved.batch}
	entries, err := s.o.Disk.List(s.dir)
	if err != nil {
		return fmt.Errorf("list folder: %w", err)
	}
	for _, e := range entries { // by name, and so by first line
		line, ok := parseName(e.Name)
		if !ok {
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
	s.ends = slices.DeleteFunc(slices.Clone(s.saved.ends[:]), func(end uint64) bool { return end <= start.line })
	if s.next.line < start.line { // a power cut took lines that were settled
		s.next.line = start.line
		s.writing = false
	}
	if s.next.line < s.saved.next { // lines that no file has; Next counts them where they should be
		s.next.line = s.saved.next
		s.writing = false
	}
	s.next.batch = max(s.next.batch, start.batch)
	for len(s.segs) > 0 && s.limit(0).line <= s.at.line {
		s.removeFirst()
	}
	first := s.next
	if len(s.segs) > 0 {
		first = position{s.segs[0].line, s.segs[0].batch}
		s.since = s.segs[0].created
	}
	s.count.Recovered = s.next.line - s.at.line
	if missing := first.line - min(first.line, s.at.line); missing > 0 {
		s.at = first
		if s.saved.count > 0 {
			s.count.Dropped.Damaged += missing
			s.count.Damaged++
			s.find(Finding{Kind: Damaged, File: segmentName(s.saved.cursor.file), Lines: missing,
				Detail: "the file is gone, or was cut; after a power cut its lines may have been delivered"})
			s.save(true) // an error is counted
		} else {
			s.count.Recovered -= missing // settled, as far as is known
			if s.saved.file == nil {
				s.find(Finding{Kind: CursorLost, File: cursorName, Detail: fmt.Sprintf("the file is gone; lines below %d are taken for settled", first.line)})
			}
		}
	}
	s.at.batch = min(s.at.batch, s.next.batch)
	return nil
}

// recoverSegment returns the segment in the file of that name, or nil if the
// file holds none.
func (s *Spool) recoverSegment(name string, line uint64, size int64) (*segment, error) {
	seg := &segment{line: line, size: size, dirty: true} // who knows whether the process before synced it
	if err := s.open(seg); errors.Is(err, disk.ErrNotFile) {
		s.find(Finding{Kind: SetAside, File: name, Detail: err.Error()})
		s.count.Damaged++
		return nil, s.setAside(name)
	} else if err != nil {
		return nil, err
	}
	v := view{file: seg.file, size: size}
	var h segmentHeader
	b, err := v.bytes(0, segmentHeaderSize)
	if err == nil {
		h, err = parseSegmentHeader(b)
	}
	switch {
	case err == nil && h.version != formatVersion:
		return nil, errors.Join(&UnsupportedError{File: s.path(name), Version: h.version}, seg.file.Close())
	case err == nil && h.line == line:
		seg.id, seg.batch, seg.created = h.id, h.batch, time.Unix(0, h.created)
		return seg, nil
	case err != nil && err != errDamaged && err != errTorn:
		return nil, errors.Join(err, seg.file.Close())
	}
	// Any frame tells what the header would.
	pos := v.resync(-1, func(f *frameHeader) bool { return f.line >= line })
	if pos < size {
		b, err := v.bytes(pos, frameHeaderSize)
		if err == nil {
			f, _ := parseFrameHeader(b)
			seg.id, seg.batch, seg.created = f.id, f.batch, time.Unix(0, f.time)
			return seg, nil
		}
	}
	lines := v.lineEnds(0)
	if err := seg.file.Close(); err != nil {
		return nil, err
	}
	if size < segmentHeaderSize || lines == 0 && v.zero() {
		s.find(Finding{Kind: EmptyGone, File: name, Bytes: size})
		return nil, s.removeFile(name)
	}
	s.find(Finding{Kind: SetAside, File: name, Bytes: size, Lines: lines, Estimated: true})
	s.count.Damaged++
	return nil, s.setAside(name)
}

func (s *Spool) setAside(name string) error {
	if err := s.o.Disk.Rename(s.path(name), s.path(name+extBad)); err != nil {
		return fmt.Errorf("set aside: %w", err)
	}
	return nil
}

func (s *Spool) removeFile(name string) error {
	if err := s.o.Disk.Remove(s.path(name)); err != nil {
		return fmt.Errorf("remove empty segment: %w", err)
	}
	return nil
}

// recoverLast reads the last segment frame by frame to see where it ends, cuts
// an unfinished append and makes it take appends again. It reports false, and
// removes the segment, if that holds no batch.
func (s *Spool) recoverLast() (kept bool, err error) {
	i := len(s.segs) - 1
	seg := s.segs[i]
	name := segmentName(seg.line)
	v := view{file: seg.file, size: seg.size}
	s.next = position{seg.line, seg.batch}
	pos, sound := int64(segmentHeaderSize), true
	for pos < seg.size {
		h, herr := v.header(pos, seg.id)
		if herr == nil && h.line < s.next.line {
			herr = errDamaged
		}
		err := herr
		if err == nil {
			_, err = v.body(pos, &h)
		}
		switch {
		case herr == nil && err != errTorn: // if the body cannot be read, Next says so
			sound = sound && err == nil && h.line == s.next.line
			s.next = position{h.end(), h.batch + 1}
			pos += h.size()
		case err != errDamaged && err != errTorn: // where the lines end must be known
			return false, err
		case herr == errDamaged:
			if to := v.resync(pos, func(f *frameHeader) bool { return f.id == seg.id && f.line >= s.next.line }); to < seg.size {
				pos, sound = to, false
				continue
			}
			if lines := v.lineEnds(v.text(pos, seg.id)); lines > 0 {
				s.next.line += lines // Next counts and reports them
				seg.guessed = true
				return true, nil
			}
			fallthrough
		default:
			if s.next.line < s.saved.next { // it was cut; Next counts what is lost
				return true, nil
			}
			// An append that was not finished.
			s.find(Finding{Kind: TornTail, File: name, Pos: pos, Bytes: seg.size - pos, Lines: uint64(h.lines)})
			s.total -= seg.size - pos
			seg.size = pos
			return s.resume(seg, sound, true), nil
		}
	}
	return s.resume(seg, sound, false), nil
}

// resume makes seg, the last segment, take appends if it can, or removes it if
// it is empty.
func (s *Spool) resume(seg *segment, sound, cut bool) (kept bool) {
	if s.next.line == seg.line {
		s.find(Finding{Kind: EmptyGone, File: segmentName(seg.line), Bytes: seg.size})
		s.segs = s.segs[:len(s.segs)-1]
		s.total -= seg.size
		seg.file.Close()
		s.o.Disk.Remove(s.path(segmentName(seg.line))) // if not, the next segment takes its place
		return false
	}
	if !sound || seg.size >= s.o.SegmentBytes {
		return true // an unfinished append behind its lines is not read
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

// text is where the lines behind pos, the start of something damaged, may
// begin: what is left of a frame header is none of them, though a byte of its
// numbers may look like a line end.
func (v *view) text(pos int64, id uint64) int64 {
	b, err := v.bytes(pos, frameHeaderSize)
	if err == nil && (bytes.Equal(b[:4], frameMagic) || binary.LittleEndian.Uint64(b[16:]) == id) {
		return pos + frameHeaderSize
	}
	return pos
}

// lineEnds counts the line ends from pos on, as far as they can be read.
func (v *view) lineEnds(pos int64) (n uint64) {
	v.scan(pos, func(b []byte) { n += uint64(countLines(b)) })
	return n
}

// zero reports whether the file holds nothing but zeros, as a power cut leaves.
func (v *view) zero() bool {
	zero := true
	v.scan(0, func(b []byte) {
		for _, c := range b {
			zero = zero && c == 0
		}
	})
	return zero
}

func (v *view) scan(pos int64, f func([]byte)) {
	buf := make([]byte, 32<<10)
	for pos < v.size {
		n, err := v.file.ReadAt(buf[:min(int64(len(buf)), v.size-pos)], pos)
		f(buf[:n])
		if err != nil && err != io.EOF || n == 0 {
			return
		}
		pos += int64(n)
	}
}
