package spool

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rollway/rollway/internal/disk"
)

const (
	extSegment = ".spool"
	extBad     = ".bad" // set aside by Open, not read
	lockName   = "LOCK"
	cursorName = "CURSOR"
)

// segment is one segment file; all fields are guarded by Spool.op.
type segment struct {
	line    uint64 // number of its first line, also its name
	end     uint64 // number behind its last line, once it is given up
	batch   uint64
	id      uint64
	created time.Time
	size    int64     // bytes that are committed
	file    disk.File // nil until it is needed
	dirty   bool      // appended to since the last Sync
	syncErr error     // its fsync failed: never called again
	guessed bool      // how many lines it lost is an estimate
}

func segmentName(line uint64) string { return fmt.Sprintf("%020d%s", line, extSegment) }

// parseName returns the first line that a segment's name says.
func parseName(name string) (line uint64, ok bool) {
	digits, ok := strings.CutSuffix(name, extSegment)
	if !ok || len(digits) != 20 {
		return 0, false
	}
	for _, c := range digits {
		if c < '0' || c > '9' || line > maxNumber/10 {
			return 0, false
		}
		line = line*10 + uint64(c-'0')
	}
	return line, true
}

func (s *Spool) path(name string) string { return filepath.Join(s.dir, name) }

// createSegment makes the segment that the next line begins.
func (s *Spool) createSegment() (*segment, error) {
	if !s.owns() {
		return nil, errGone
	}
	var id [8]byte
	rand.Read(id[:])
	seg := &segment{
		line: s.next.line, batch: s.next.batch, id: binary.LittleEndian.Uint64(id[:]),
		created: time.Now(), size: segmentHeaderSize, dirty: true,
	}
	// A file of this name can only be the remains of a creation that failed.
	path := s.path(segmentName(seg.line))
	f, err := s.o.Disk.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o640)
	if err != nil {
		return nil, fmt.Errorf("create segment: %w", err)
	}
	h := appendSegmentHeader(nil, segmentHeader{version: formatVersion, id: seg.id, line: seg.line, batch: seg.batch, created: seg.created.UnixNano()})
	if err := writeAt(f, h, 0); err != nil {
		return nil, errors.Join(fmt.Errorf("write segment header: %w", err), f.Close(), s.o.Disk.Remove(path))
	}
	seg.file = f
	s.segs = append(s.segs, seg)
	s.total += seg.size
	s.writing = true
	return seg, nil
}

func writeAt(f disk.File, p []byte, off int64) error {
	n, err := f.WriteAt(p, off)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	return err
}

// limit is the number behind the last line of segment i.
func (s *Spool) limit(i int) position {
	if i+1 < len(s.segs) {
		return position{s.segs[i+1].line, s.segs[i+1].batch}
	}
	return s.next
}

// removeFirst gives up the oldest segment and its file. Files go in their
// order also where the disk refuses one for a while, so that what a crash
// leaves has no gap.
func (s *Spool) removeFirst() {
	seg := s.segs[0]
	seg.end = s.limit(0).line
	if len(s.segs) == 1 {
		s.writing = false
	}
	s.segs = append(s.segs[:0], s.segs[1:]...)
	if s.reading > 0 {
		s.reading--
	} else {
		s.pos = segmentHeaderSize
		s.view.reset()
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

// sweep removes files that were given up. A cursor that cannot be written and
// says less goes first: the lines would pass for lost at the next Open.
func (s *Spool) sweep() {
	for len(s.garbage) > 0 && s.owns() {
		seg := s.garbage[0]
		if s.saved.file != nil && s.saved.line < seg.end && s.save(false) != nil {
			if err := s.o.Disk.Remove(s.path(cursorName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				s.fail(fmt.Errorf("remove cursor: %w", err))
				return
			}
			s.forgetCursor()
		}
		if err := s.o.Disk.Remove(s.path(segmentName(seg.line))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.fail(fmt.Errorf("remove segment: %w", err))
			return
		}
		s.total -= seg.size
		s.garbage = append(s.garbage[:0], s.garbage[1:]...)
	}
}

// open gives seg its file.
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

// A view reads frames from a file through a window.
type view struct {
	file io.ReaderAt
	size int64
	buf  []byte
	pos  int64 // of buf
}

const viewBytes = 256 << 10

func (v *view) reset() { v.file, v.buf = nil, v.buf[:0] }

// over makes v read the first size bytes of f, which only grows.
func (v *view) over(f io.ReaderAt, size int64) {
	if v.file != f {
		v.reset()
		v.file = f
	}
	v.size = size
}

// bytes returns the n bytes at pos, valid until the next call; errTorn if the
// file ends before.
func (v *view) bytes(pos int64, n int) ([]byte, error) {
	if pos+int64(n) > v.size {
		return nil, errTorn
	}
	if pos < v.pos || pos+int64(n) > v.pos+int64(len(v.buf)) {
		want := int(min(int64(max(n, viewBytes)), v.size-pos))
		if cap(v.buf) < want || cap(v.buf) > 4*viewBytes && want <= viewBytes {
			v.buf = make([]byte, want)
		}
		v.buf, v.pos = v.buf[:want], pos
		if got, err := v.file.ReadAt(v.buf, pos); got < want {
			v.buf = v.buf[:0]
			if err == io.EOF {
				return nil, errTorn // somebody has cut the file
			}
			return nil, fmt.Errorf("read segment: %w", err)
		}
	}
	return v.buf[pos-v.pos:][:n], nil
}

// header returns the frame header at pos; errTorn if the file ends within it,
// errDamaged if it is none of a segment with this id.
func (v *view) header(pos int64, id uint64) (frameHeader, error) {
	b, err := v.bytes(pos, frameHeaderSize)
	if err != nil {
		return frameHeader{}, err
	}
	h, err := parseFrameHeader(b)
	if err == nil && h.id != id {
		err = errDamaged
	}
	return h, err
}

// body returns the body of the frame h at pos.
func (v *view) body(pos int64, h *frameHeader) ([]byte, error) {
	b, err := v.bytes(pos+frameHeaderSize, h.bodyLen)
	if err == nil {
		err = h.check(b)
	}
	return b, err
}

// resync returns the position of the next frame header behind pos that ok
// accepts, or the end of the file. Pieces that cannot be read are passed over.
func (v *view) resync(pos int64, ok func(*frameHeader) bool) int64 {
	for pos++; pos+frameHeaderSize <= v.size; {
		b, err := v.window(pos)
		if err != nil {
			pos += viewBytes
			continue
		}
		i := bytes.Index(b, frameMagic)
		switch {
		case i < 0:
			pos += int64(len(b) - len(frameMagic) + 1)
		case i+frameHeaderSize > len(b):
			pos += int64(i)
			if i == 0 {
				return v.size
			}
		default:
			if h, err := parseFrameHeader(b[i:]); err == nil && ok(&h) {
				return pos + int64(i)
			}
			pos += int64(i) + 1
		}
	}
	return v.size
}

// window returns what is at hand from pos on, at least a frame header if the
// file holds that much.
func (v *view) window(pos int64) ([]byte, error) {
	if pos < v.pos || pos+frameHeaderSize > v.pos+int64(len(v.buf)) {
		return v.bytes(pos, int(min(viewBytes, v.size-pos)))
	}
	return v.buf[pos-v.pos:], nil
}
