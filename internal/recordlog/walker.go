package recordlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

const (
	// walkWindow is what a Walker reads ahead by default.
	walkWindow = 64 << 10
	// walkStep is what it reads for a header after a skipped body.
	walkStep = 4 << 10
	// keepWindow is the largest buffer that a Walker keeps.
	keepWindow = 1 << 20
)

// A Walker steps over the frames of one segment. All that it returns has been checked, and
// each step moves Pos forward. One goroutine may use it.
type Walker struct {
	Pos    int64 // where the next frame begins
	Limit  int64 // end of the bytes that may be read
	Window int   // bytes to read ahead; 0: 64 KiB

	f     io.ReaderAt
	path  string
	id    uint64 // of the segment; adopted from the first frame unless known
	known bool

	buf    []byte // file bytes [bufPos, bufPos+len(buf))
	bufPos int64
	lean   bool // the last body was skipped: read headers only
}

// Open points w at the first frame of a segment and keeps its memory.
func (w *Walker) Open(f io.ReaderAt, path string, limit int64) {
	w.f, w.path, w.Limit, w.Pos = f, path, limit, HeaderSize
	w.id, w.known = 0, false
	w.buf, w.bufPos, w.lean = w.buf[:0], 0, false
}

func (w *Walker) File() io.ReaderAt { return w.f }

func (w *Walker) Path() string { return w.path }

// Expect makes w refuse frames of other segments than the one with that id.
func (w *Walker) Expect(id uint64) { w.id, w.known = id, true }

// Bytes returns n bytes of the file at pos, valid until the next call. It fails with
// ErrTorn if the file ends before.
func (w *Walker) Bytes(pos int64, n int) ([]byte, error) {
	if end := w.bufPos + int64(len(w.buf)); pos >= w.bufPos && pos+int64(n) <= end {
		at := int(pos - w.bufPos)
		return w.buf[at : at+n], nil
	}
	if pos+int64(n) > w.Limit {
		return nil, ErrTorn
	}
	window := walkWindow
	if w.lean {
		window = walkStep
	} else if w.Window > 0 {
		window = w.Window
	}
	want := max(n, int(min(int64(window), w.Limit-pos)))
	var have []byte // the first of them
	if at := pos - w.bufPos; 0 <= at && at < int64(len(w.buf)) {
		have = w.buf[at:]
	}
	if cap(w.buf) < want || cap(w.buf) > keepWindow && want <= keepWindow {
		w.buf = make([]byte, 0, max(want, int(min(walkWindow, w.Limit-pos))))
	}
	got := copy(w.buf[:want], have)
	read, err := w.f.ReadAt(w.buf[got:want], pos+int64(got))
	got += read
	w.bufPos, w.buf = pos, w.buf[:got]
	switch {
	case got >= n:
		return w.buf[:n], nil
	case errors.Is(err, io.EOF):
		return nil, ErrTorn // something has cut the file
	}
	return nil, fmt.Errorf("read segment: %w", err)
}

// FileHeader reads the header of the file and expects frames with its id. The error is as
// from ParseHeader, or the read's.
func (w *Walker) FileHeader(kind Kind) (Header, error) {
	b, err := w.Bytes(0, HeaderSize)
	if err != nil {
		return Header{}, err
	}
	h, err := ParseHeader(b, kind, w.path)
	if err == nil {
		w.Expect(h.ID)
	}
	return h, err
}

// Header returns the frame header at Pos without moving. It fails with io.EOF at the limit,
// ErrDamaged if no frame begins there, and ErrTorn if the file ends within the header or,
// then with the header, within the body.
func (w *Walker) Header() (Frame, error) {
	if w.Pos >= w.Limit {
		return Frame{}, io.EOF
	}
	b, err := w.Bytes(w.Pos, FrameHeaderSize)
	if err != nil {
		return Frame{}, err
	}
	h, err := ParseFrame(b)
	switch {
	case err != nil || w.known && h.ID != w.id:
		return Frame{}, ErrDamaged
	case h.Size() > w.Limit-w.Pos:
		return h, ErrTorn
	}
	w.Expect(h.ID)
	return h, nil
}

// Skip moves past the frame h at Pos without reading its body.
func (w *Walker) Skip(h *Frame) {
	w.Pos += h.Size()
	w.lean = h.Size() > walkStep
}

// Body returns the checked body of the frame h at Pos, valid until the next call on w, and
// moves past it, even if the body is damaged. Other errors leave Pos.
func (w *Walker) Body(h *Frame) ([]byte, error) {
	w.lean = false
	b, err := w.Bytes(w.Pos+FrameHeaderSize, h.BodyLen)
	if err != nil && !IsDamage(err) {
		return nil, err
	}
	w.Pos += h.Size()
	if err != nil {
		return nil, err
	}
	return b, h.check(b)
}

// Head returns the checked head of the body of the frame h at Pos, valid until the next
// call on w. It does not move.
func (w *Walker) Head(h *Frame) ([]byte, error) {
	b, err := w.Bytes(w.Pos+FrameHeaderSize, min(h.KeysLen+4, h.BodyLen))
	if err != nil {
		return nil, err
	}
	n, ok := h.headLen(b)
	if !ok {
		return nil, ErrDamaged
	}
	if b, err = w.Bytes(w.Pos+FrameHeaderSize, n); err != nil {
		return nil, err
	}
	return b, h.check(b)
}

// Block returns the checked bytes of a block of the frame at Pos, valid until the next call
// on w. It does not move.
func (w *Walker) Block(b *Block) ([]byte, error) {
	data, err := w.Bytes(w.Pos+FrameHeaderSize+int64(b.Pos), b.Len)
	if err == nil && Checksum(data) != b.Sum {
		return nil, ErrDamaged
	}
	return data, err
}

// Lean says whether w reads no more ahead than for a header.
func (w *Walker) Lean(lean bool) { w.lean = lean }

// Resync moves Pos forward to the next sound frame header of this segment that accept,
// called with Pos there, agrees to, or to the limit. It skips what cannot be read and
// returns the first error of that.
func (w *Walker) Resync(accept func(*Frame) bool) (failed error) {
	w.lean = false
	for w.Pos++; w.Limit-w.Pos >= FrameHeaderSize; {
		b, err := w.ahead()
		if err != nil {
			if IsDamage(err) { // cut meanwhile
				break
			}
			if failed == nil {
				failed = err
			}
			w.Pos += walkWindow
			continue
		}
		at := bytes.Index(b, frameMagic)
		if at < 0 {
			w.Pos += int64(len(b) - len(frameMagic) + 1)
			continue
		}
		w.Pos += int64(at)
		if h, err := w.Header(); (err == nil || h.Records > 0) && accept(&h) {
			return failed
		}
		w.Pos++
	}
	w.Pos = w.Limit
	return failed
}

// ahead returns the buffered bytes from Pos on, or reads a window: at least a frame header.
func (w *Walker) ahead() ([]byte, error) {
	if at := w.Pos - w.bufPos; at >= 0 && at+FrameHeaderSize <= int64(len(w.buf)) {
		return w.buf[at:], nil
	}
	return w.Bytes(w.Pos, int(min(walkWindow, w.Limit-w.Pos)))
}

func (w *Walker) Fits(h *Frame) bool { return h.Size() <= w.Limit-w.Pos }

// LineEnds counts the line ends from pos, the start of something damaged, to the limit.
// Those in the rest of a frame header do not count.
func (w *Walker) LineEnds(pos int64) (n uint64) {
	b, err := w.Bytes(pos, int(min(FrameHeaderSize, w.Limit-pos)))
	if err == nil && (bytes.HasPrefix(b, frameMagic) || len(b) == FrameHeaderSize && w.known && binary.LittleEndian.Uint64(b[24:]) == w.id) {
		pos += FrameHeaderSize
	}
	w.each(pos, func(b []byte) { n += uint64(bytes.Count(b, []byte{'\n'})) })
	return n
}

// each calls f with the bytes from pos to the limit, as far as they are readable.
func (w *Walker) each(pos int64, f func([]byte)) {
	buf := make([]byte, 32<<10)
	for pos < w.Limit {
		n, err := w.f.ReadAt(buf[:min(int64(len(buf)), w.Limit-pos)], pos)
		f(buf[:n])
		if err != nil && err != io.EOF || n == 0 {
			return
		}
		pos += int64(n)
	}
}

// Zero reports whether the file is nothing but zeros, as a power cut may leave it.
func (w *Walker) Zero() bool {
	zero, seen := true, int64(0)
	w.each(0, func(b []byte) {
		seen += int64(len(b))
		zero = zero && len(bytes.Trim(b, "\x00")) == 0
	})
	return zero && seen == w.Limit
}
