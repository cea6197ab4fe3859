package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/rollway/rollway/internal/disk"
)

const (
	// walkWindow is what a walker reads ahead, in bytes.
	walkWindow = 64 << 10
	// walkStep is what it reads for a header alone after a skipped body.
	walkStep = 4 << 10
	// keepWindow is the largest buffer a walker keeps.
	keepWindow = 1 << 20
)

// A walker steps over the frames of one segment file. It believes nothing: all
// it returns has been checked. Each step moves pos forward, so a walk ends.
// For one goroutine.
type walker struct {
	f     disk.File
	path  string
	id    uint32 // of the segment; adopted from the first frame unless known
	known bool   // id is known
	pos   int64  // where the next frame begins
	limit int64  // end of the bytes that may be read

	buf    []byte // file bytes [bufPos, bufPos+len(buf))
	bufPos int64
	plain  []byte // an unpacked payload
	lean   bool   // the last body was skipped: read headers only
}

// open points the walker at a file; its buffer is kept.
func (w *walker) open(f disk.File, path string, limit int64) {
	w.f, w.path, w.limit = f, path, limit
	w.id, w.known, w.pos = 0, false, segmentHeaderSize
	w.buf, w.bufPos, w.lean = w.buf[:0], 0, false
}

// bytes returns n bytes of the file at pos, valid until the next call.
func (w *walker) bytes(pos int64, n int) ([]byte, error) {
	if have := w.bufPos + int64(len(w.buf)); pos >= w.bufPos && pos+int64(n) <= have {
		at := int(pos - w.bufPos)
		return w.buf[at : at+n], nil
	}
	want := walkWindow
	if w.lean {
		want = walkStep
	}
	want = max(n, int(min(int64(want), w.limit-pos)))
	if cap(w.buf) < want || cap(w.buf) > keepWindow && want <= keepWindow {
		w.buf = make([]byte, 0, max(want, walkWindow))
	}
	got, err := w.f.ReadAt(w.buf[:want], pos)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	w.bufPos, w.buf = pos, w.buf[:got]
	switch {
	case got >= n:
		return w.buf[:n], nil
	case err != nil:
		return nil, fmt.Errorf("read segment: %w", err)
	}
	return nil, errDamaged // shorter than it was
}

// readSegmentHeader reads the header at the file's start and takes over its id.
func (w *walker) readSegmentHeader() (segmentHeader, error) {
	if w.limit < segmentHeaderSize {
		return segmentHeader{}, errDamaged
	}
	b, err := w.bytes(0, segmentHeaderSize)
	if err != nil {
		return segmentHeader{}, err
	}
	h, err := parseSegmentHeader(b)
	if err != nil {
		return segmentHeader{}, err
	}
	if h.version != formatVersion {
		return h, &UnsupportedError{File: w.path, What: fmt.Sprintf("format version %d", h.version)}
	}
	w.id, w.known = h.id, true
	return h, nil
}

// header returns the frame header at pos without moving: io.EOF at the limit,
// errDamaged when no frame begins there, or the read's error.
func (w *walker) header() (frameHeader, error) {
	if w.pos >= w.limit {
		return frameHeader{}, io.EOF
	}
	if w.limit-w.pos < frameHeaderSize {
		return frameHeader{}, errDamaged
	}
	b, err := w.bytes(w.pos, frameHeaderSize)
	if err != nil {
		return frameHeader{}, err
	}
	h, err := parseFrameHeader(b)
	if err != nil || h.size() > w.limit-w.pos || w.known && h.id != w.id {
		return frameHeader{}, errDamaged
	}
	w.id, w.known = h.id, true
	return h, nil
}

// skip moves behind the frame h at pos without reading its body.
func (w *walker) skip(h *frameHeader) {
	w.pos += h.size()
	w.lean = h.size() > walkStep
}

// body returns the lines of the frame h at pos, valid until the next call on w,
// and moves behind it, also when it returns errDamaged. Other errors leave pos.
func (w *walker) body(h *frameHeader) ([]byte, error) {
	if what := h.unknown(); what != "" {
		return nil, &UnsupportedError{File: w.path, Pos: w.pos, What: what}
	}
	b, err := w.raw(h)
	if err != nil {
		return nil, err
	}
	if h.codec == codecNone {
		return b[h.keysLen:], nil
	}
	if cap(w.plain) > keepWindow {
		w.plain = nil
	}
	lines, err := unpack(w.plain[:0], b[h.keysLen:], h.unpacked)
	if err != nil {
		return nil, err
	}
	if w.plain = lines; lineCount(lines) != h.records {
		return nil, errDamaged
	}
	return lines, nil
}

// raw is body without regard to the codec: the checked bytes behind the header.
func (w *walker) raw(h *frameHeader) ([]byte, error) {
	w.lean = false
	b, err := w.bytes(w.pos+frameHeaderSize, h.bodyLen)
	if err != nil && err != errDamaged {
		return nil, err
	}
	w.pos += h.size()
	if err != nil {
		return nil, err
	}
	return b, h.check(b)
}

// resync moves pos to the next place behind it where a frame of this segment
// with a first offset of at least minFirst begins, or to the limit.
func (w *walker) resync(minFirst uint64) error {
	w.lean = false
	w.pos++
	for w.pos < w.limit {
		n := int(min(walkWindow, w.limit-w.pos))
		b, err := w.bytes(w.pos, n)
		if err != nil && err != errDamaged {
			return err
		}
		if err != nil || n < frameHeaderSize {
			break
		}
		at := bytes.Index(b, frameMagic)
		if at < 0 {
			w.pos += int64(n - len(frameMagic) + 1)
			continue
		}
		w.pos += int64(at)
		switch h, err := w.header(); {
		case err == nil && h.first >= minFirst:
			return nil
		case err == nil || err == errDamaged:
			w.pos++
		default:
			return err
		}
	}
	w.pos = w.limit
	return nil
}
