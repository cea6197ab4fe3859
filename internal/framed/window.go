package framed

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

const windowSize = 1 << 20

// window is a file of which a part is in memory.
type window struct {
	src  io.ReaderAt
	size int64  // of the file, bytes
	buf  []byte // what of the file begins at off
	off  int64
	long []byte // for one record longer than the window
	read int64  // bytes, so far
	err  error  // of src; sticks
}

// view returns n bytes, at most windowSize, of the file at off, or fewer where
// the file ends or cannot be read. They are valid until the next call.
func (w *window) view(off int64, n int) []byte {
	n = int(min(int64(n), max(w.size-off, 0)))
	if n == 0 || w.err != nil {
		return nil
	}
	if off < w.off || off+int64(n) > w.off+int64(len(w.buf)) {
		w.buf = w.buf[:min(int64(cap(w.buf)), w.size-off)]
		w.off = off
		got, err := w.src.ReadAt(w.buf, off)
		w.buf = w.buf[:got]
		w.read += int64(got)
		if err != nil && !errors.Is(err, io.EOF) {
			w.err = fmt.Errorf("read at byte %d: %w", off+int64(got), err)
		}
	}
	at := off - w.off
	return w.buf[at:min(at+int64(n), int64(len(w.buf)))]
}

// sound reports whether a record under seed begins at off and ends at limit or
// before, and returns its length in bytes.
func (w *window) sound(seed Seed, off, limit int64) (n int, ok bool) {
	limit = min(limit, w.size)
	b := w.view(off, RecordHeaderSize)
	if len(b) < RecordHeaderSize {
		return 0, false
	}
	length := int64(binary.LittleEndian.Uint32(b[4:]))
	end := off + RecordHeaderSize + length
	if end > limit {
		return 0, false
	}
	want, sum := binary.LittleEndian.Uint32(b), uint32(seed)
	for off += 4; off < end; {
		b := w.view(off, int(min(end-off, windowSize)))
		if len(b) == 0 {
			return 0, false
		}
		sum = crc32.Update(sum, castagnoli, b)
		off += int64(len(b))
	}
	return int(length), sum == want
}

// record returns the n bytes of the record at off, which was sound under seed.
// What had to be read again is checked again: a writer may be at work.
func (w *window) record(seed Seed, off int64, n int) ([]byte, error) {
	off += RecordHeaderSize
	read := w.read
	var b []byte
	if n <= windowSize {
		b = w.view(off, n)
	} else {
		if cap(w.long) < n {
			w.long = make([]byte, n)
		}
		got, err := w.src.ReadAt(w.long[:n], off)
		if b = w.long[:got]; err != nil && !errors.Is(err, io.EOF) {
			w.err = fmt.Errorf("read at byte %d: %w", off+int64(got), err)
		}
		read = -1
	}
	if w.err == nil && (len(b) < n || read != w.read && !w.stillSound(seed, off, b)) {
		w.err = fmt.Errorf("record at byte %d: the file changed while it was read", off-RecordHeaderSize)
	}
	return b, w.err
}

// stillSound reports whether b is what the checksum before off, where it was
// read, is of.
func (w *window) stillSound(seed Seed, off int64, b []byte) bool {
	var head [RecordHeaderSize]byte
	if _, err := w.src.ReadAt(head[:], off-RecordHeaderSize); err != nil {
		return false
	}
	sum := crc32.Update(uint32(seed), castagnoli, head[4:])
	return int(binary.LittleEndian.Uint32(head[4:])) == len(b) && crc32.Update(sum, castagnoli, b) == binary.LittleEndian.Uint32(head[:])
}

// Detect reports whether src, of size bytes, looks like a segment by its first
// bytes or, if those are lost, by those of its first batch.
func Detect(src io.ReaderAt, size int64) bool {
	w := window{src: src, size: size, buf: make([]byte, 0, headerFields)}
	return IsSegment(w.view(0, headerFields)) || bytes.HasPrefix(w.view(SegmentHeaderSize, len(batchMagic)), batchMagic)
}
