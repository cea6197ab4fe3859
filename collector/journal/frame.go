package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// A segment file is one segment header followed by frames without gaps; a
// frame is one group of batches. Numbers are little-endian, times are unix
// nanoseconds, checksums CRC-32C (Castagnoli). docs/FORMAT.md has the same
// tables.
//
//	Segment header, 64 bytes
//	  offset  size  field
//	       0     8  magic: 89 52 57 4A 0D 0A 1A 0A
//	       8     4  format version: 1
//	      12     4  segment id: random, repeated in each frame
//	      16     8  offset of the first record
//	      24     8  time of creation
//	      32     8  first offset of the segment before; the own one if none
//	      40     4  1 = packed: rewritten with fewer frames and codec 1; 0 = as written
//	      44     8  time of the last write, if packed
//	      52     8  zero
//	      60     4  checksum of bytes 0-59
//
//	Frame header, 64 bytes
//	  offset  size  field
//	       0     4  magic: FF 52 57 46
//	       4     4  checksum of bytes 8-63
//	       8     4  checksum of the body
//	      12     4  length of the body in bytes
//	      16     8  offset of the first record
//	      24     4  number of records, at least 1
//	      28     4  segment id
//	      32     8  least time of a record
//	      40     8  greatest time of a record
//	      48     1  codec of the payload: 0 = none, 1 = zstd
//	      49     1  flags: 0
//	      50     2  number of idempotency keys
//	      52     4  length of the key section in bytes
//	      56     4  length of the payload when unpacked
//	      60     4  zero
//
//	Body
//	  key section: per key
//	       0     2  length n of the key, at most 511; 8000h more if there is a number of events
//	       2     4  index of the key's first record in the frame
//	       6     4  number of records stored under the key, also in the frames behind
//	      10     8  time of the append
//	      18     4  number of events that the records are of, only where rules or limits left some out
//	   18/22     n  the key
//	  payload: the records' canonical lines, each ended by 0A

const (
	segmentHeaderSize = 64
	frameHeaderSize   = 64
	formatVersion     = 1

	// maxBody bounds a body so that a length fits 32 bits on every system.
	maxBody = 1 << 30

	// maxLines leaves room for a key in a frame of one batch.
	maxLines = maxBody - keyHeaderSize - keyEventsSize - MaxKeyBytes
)

var (
	segmentMagic = []byte("\x89RWJ\r\n\x1a\n")
	frameMagic   = []byte("\xffRWF") // FF occurs in no UTF-8 text, so in no payload

	castagnoli = crc32.MakeTable(crc32.Castagnoli)

	errDamaged = errors.New("checksum or structure is wrong")
)

// UnsupportedError reports a file or frame that a newer version of the program
// wrote. It is not damage: nothing is cut or skipped.
type UnsupportedError struct {
	File string // path of the segment
	Pos  int64  // position of the frame in bytes; 0 for the segment header
	What string // the field and its value
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("read %s at byte %d: %s is not known to this version; open it with the version that wrote it", e.File, e.Pos, e.What)
}

type segmentHeader struct {
	version uint32
	id      uint32
	first   uint64
	created int64
	prev    uint64
	packed  bool
	written int64 // if packed
}

func appendSegmentHeader(dst []byte, h segmentHeader) []byte {
	start := len(dst)
	dst = append(dst, segmentMagic...)
	dst = binary.LittleEndian.AppendUint32(dst, h.version)
	dst = binary.LittleEndian.AppendUint32(dst, h.id)
	dst = binary.LittleEndian.AppendUint64(dst, h.first)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(h.created))
	dst = binary.LittleEndian.AppendUint64(dst, h.prev)
	packed := uint32(0)
	if h.packed {
		packed = 1
	}
	dst = binary.LittleEndian.AppendUint32(dst, packed)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(h.written))
	dst = append(dst, make([]byte, 8)...)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// parseSegmentHeader returns errDamaged unless b begins with a whole header.
func parseSegmentHeader(b []byte) (segmentHeader, error) {
	if len(b) < segmentHeaderSize || !bytes.Equal(b[:8], segmentMagic) ||
		crc32.Checksum(b[:60], castagnoli) != binary.LittleEndian.Uint32(b[60:]) {
		return segmentHeader{}, errDamaged
	}
	return segmentHeader{
		version: binary.LittleEndian.Uint32(b[8:]),
		id:      binary.LittleEndian.Uint32(b[12:]),
		first:   binary.LittleEndian.Uint64(b[16:]),
		created: int64(binary.LittleEndian.Uint64(b[24:])),
		prev:    binary.LittleEndian.Uint64(b[32:]),
		packed:  binary.LittleEndian.Uint32(b[40:]) == 1,
		written: int64(binary.LittleEndian.Uint64(b[44:])),
	}, nil
}

type frameHeader struct {
	bodySum  uint32
	bodyLen  int // bytes
	first    uint64
	records  int
	id       uint32
	minTime  int64
	maxTime  int64
	codec    uint8
	flags    uint8
	keys     int
	keysLen  int // bytes
	unpacked int // bytes
}

// size is the length of the whole frame in bytes.
func (h *frameHeader) size() int64 { return frameHeaderSize + int64(h.bodyLen) }

// end is the offset behind the frame's last record.
func (h *frameHeader) end() uint64 { return h.first + uint64(h.records) }

// putFrameHeader writes h to the first 64 bytes of dst.
func putFrameHeader(dst []byte, h *frameHeader) {
	copy(dst, frameMagic)
	binary.LittleEndian.PutUint32(dst[8:], h.bodySum)
	binary.LittleEndian.PutUint32(dst[12:], uint32(h.bodyLen))
	binary.LittleEndian.PutUint64(dst[16:], h.first)
	binary.LittleEndian.PutUint32(dst[24:], uint32(h.records))
	binary.LittleEndian.PutUint32(dst[28:], h.id)
	binary.LittleEndian.PutUint64(dst[32:], uint64(h.minTime))
	binary.LittleEndian.PutUint64(dst[40:], uint64(h.maxTime))
	dst[48] = h.codec
	dst[49] = h.flags
	binary.LittleEndian.PutUint16(dst[50:], uint16(h.keys))
	binary.LittleEndian.PutUint32(dst[52:], uint32(h.keysLen))
	binary.LittleEndian.PutUint32(dst[56:], uint32(h.unpacked))
	binary.LittleEndian.PutUint32(dst[60:], 0)
	binary.LittleEndian.PutUint32(dst[4:], crc32.Checksum(dst[8:frameHeaderSize], castagnoli))
}

// parseFrameHeader returns errDamaged unless b begins with a whole frame
// header that makes sense. Codec and flags are for the caller to judge.
func parseFrameHeader(b []byte) (frameHeader, error) {
	if len(b) < frameHeaderSize || !bytes.Equal(b[:4], frameMagic) ||
		crc32.Checksum(b[8:frameHeaderSize], castagnoli) != binary.LittleEndian.Uint32(b[4:]) {
		return frameHeader{}, errDamaged
	}
	bodyLen, records := binary.LittleEndian.Uint32(b[12:]), binary.LittleEndian.Uint32(b[24:])
	keysLen, unpacked := binary.LittleEndian.Uint32(b[52:]), binary.LittleEndian.Uint32(b[56:])
	h := frameHeader{
		bodySum:  binary.LittleEndian.Uint32(b[8:]),
		bodyLen:  int(bodyLen),
		first:    binary.LittleEndian.Uint64(b[16:]),
		records:  int(records),
		id:       binary.LittleEndian.Uint32(b[28:]),
		minTime:  int64(binary.LittleEndian.Uint64(b[32:])),
		maxTime:  int64(binary.LittleEndian.Uint64(b[40:])),
		codec:    b[48],
		flags:    b[49],
		keys:     int(binary.LittleEndian.Uint16(b[50:])),
		keysLen:  int(keysLen),
		unpacked: int(unpacked),
	}
	if bodyLen > maxBody || keysLen > bodyLen || unpacked > maxBody || records == 0 || records > maxBody ||
		h.first > math.MaxInt64-uint64(records) {
		return frameHeader{}, errDamaged
	}
	return h, nil
}

// unknown names the first field whose value this version cannot read, or "".
func (h *frameHeader) unknown() string {
	switch {
	case h.codec > codecZstd:
		return fmt.Sprintf("codec %d", h.codec)
	case h.flags != 0:
		return fmt.Sprintf("flags %#02x", h.flags)
	}
	return ""
}

// check returns errDamaged unless body, the frame's whole body, has the right
// checksum and, as far as this version knows the fields, as many lines as the
// header says.
func (h *frameHeader) check(body []byte) error {
	if crc32.Checksum(body, castagnoli) != h.bodySum {
		return errDamaged
	}
	if lines := body[h.keysLen:]; h.codec == codecNone && h.flags == 0 && (len(lines) != h.unpacked || lineCount(lines) != h.records) {
		return errDamaged
	}
	return nil
}

// lineCount returns the number of lines in b, or -1 when b does not end in '\n'.
func lineCount(b []byte) int {
	if len(b) == 0 || b[len(b)-1] != '\n' {
		return -1
	}
	return bytes.Count(b, []byte{'\n'})
}

// lineEnd returns the length of the first line of b with its '\n'.
func lineEnd(b []byte) int { return bytes.IndexByte(b, '\n') + 1 }
