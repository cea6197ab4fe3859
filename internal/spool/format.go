package spool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// A segment file is one segment header followed by frames without gaps; a
// frame is one batch of lines. Lines and batches are numbered from 0 over the
// life of the spool. Numbers are little-endian, times are unix nanoseconds,
// checksums CRC-32C (Castagnoli). docs/FORMAT.md has the same tables.
//
//	Segment header, 64 bytes
//	  offset  size  field
//	       0     8  magic: 89 52 57 53 0D 0A 1A 0A
//	       8     4  format version: 1
//	      12     4  zero
//	      16     8  segment id: random, repeated in each frame
//	      24     8  number of the first line
//	      32     8  number of the first batch
//	      40     8  time of creation
//	      48    12  zero
//	      60     4  checksum of bytes 0-59
//
//	Frame header, 56 bytes
//	  offset  size  field
//	       0     4  magic: FF 52 57 53
//	       4     4  checksum of bytes 8-55
//	       8     4  checksum of the body
//	      12     4  length of the body in bytes
//	      16     8  segment id
//	      24     8  number of the batch
//	      32     8  number of its first line
//	      40     8  time of the append
//	      48     4  number of lines, at least 1
//	      52     4  zero
//
//	Body
//	  the lines, each ended by 0A
//
//	Cursor file: two slots, at 0 and 512, written by turns; the sound one with
//	the greater count holds. A slot, 128 bytes
//	  offset  size  field
//	       0     8  magic: 89 52 57 43 0D 0A 1A 0A
//	       8     4  format version: 1
//	      12     4  zero
//	      16     8  count of writings; odd in the slot at 512
//	      24     8  number of the oldest line that is not settled
//	      32     8  number of its batch
//	      40     8  number behind the last line that was appended
//	      48    64  8 numbers, rising: behind each piece that is being delivered; then 0
//	     112     8  number of the first line of the segment with that line
//	     120     4  zero
//	     124     4  checksum of bytes 0-123

const (
	segmentHeaderSize = 64
	frameHeaderSize   = 56
	cursorSize        = 128
	cursorSlot        = 512
	formatVersion     = 1

	// maxBody bounds a body so that a length fits 32 bits on every system.
	maxBody = 1 << 30

	// maxNumber bounds the numbers of lines and batches that are believed.
	maxNumber = 1 << 62
)

var (
	segmentMagic = []byte("\x89RWS\r\n\x1a\n")
	frameMagic   = []byte("\xffRWS")
	cursorMagic  = []byte("\x89RWC\r\n\x1a\n")

	castagnoli = crc32.MakeTable(crc32.Castagnoli)

	errDamaged = errors.New("checksum or structure is wrong")
	errTorn    = errors.New("the file ends within a frame")
)

// UnsupportedError reports a file that a newer version of the program wrote.
// It is not damage: nothing is cut or skipped.
type UnsupportedError struct {
	File    string // path
	Version uint32
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s has format version %d, which this version does not know; open it with the version that wrote it", e.File, e.Version)
}

type segmentHeader struct {
	version uint32
	id      uint64
	line    uint64
	batch   uint64
	created int64
}

func appendSegmentHeader(dst []byte, h segmentHeader) []byte {
	start := len(dst)
	dst = append(dst, segmentMagic...)
	dst = binary.LittleEndian.AppendUint32(dst, h.version)
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	dst = binary.LittleEndian.AppendUint64(dst, h.id)
	dst = binary.LittleEndian.AppendUint64(dst, h.line)
	dst = binary.LittleEndian.AppendUint64(dst, h.batch)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(h.created))
	dst = append(dst, make([]byte, 12)...)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// parseSegmentHeader returns errDamaged unless b begins with a whole header.
// Fields of a version that is not formatVersion mean nothing.
func parseSegmentHeader(b []byte) (segmentHeader, error) {
	if len(b) < segmentHeaderSize || !bytes.Equal(b[:8], segmentMagic) ||
		crc32.Checksum(b[:60], castagnoli) != binary.LittleEndian.Uint32(b[60:]) {
		return segmentHeader{}, errDamaged
	}
	h := segmentHeader{
		version: binary.LittleEndian.Uint32(b[8:]),
		id:      binary.LittleEndian.Uint64(b[16:]),
		line:    binary.LittleEndian.Uint64(b[24:]),
		batch:   binary.LittleEndian.Uint64(b[32:]),
		created: int64(binary.LittleEndian.Uint64(b[40:])),
	}
	if h.version == formatVersion && (h.line >= maxNumber || h.batch >= maxNumber) {
		return segmentHeader{}, errDamaged
	}
	return h, nil
}

type frameHeader struct {
	bodySum uint32
	bodyLen int // bytes
	id      uint64
	batch   uint64
	line    uint64
	time    int64
	lines   int
}

// size is the length of the whole frame in bytes.
func (h *frameHeader) size() int64 { return frameHeaderSize + int64(h.bodyLen) }

// end is the number behind the frame's last line.
func (h *frameHeader) end() uint64 { return h.line + uint64(h.lines) }

func appendFrameHeader(dst []byte, h *frameHeader) []byte {
	start := len(dst)
	dst = append(dst, frameMagic...)
	dst = append(dst, 0, 0, 0, 0)
	dst = binary.LittleEndian.AppendUint32(dst, h.bodySum)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(h.bodyLen))
	dst = binary.LittleEndian.AppendUint64(dst, h.id)
	dst = binary.LittleEndian.AppendUint64(dst, h.batch)
	dst = binary.LittleEndian.AppendUint64(dst, h.line)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(h.time))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(h.lines))
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	binary.LittleEndian.PutUint32(dst[start+4:], crc32.Checksum(dst[start+8:], castagnoli))
	return dst
}

// parseFrameHeader returns errDamaged unless b begins with a whole frame
// header that makes sense.
func parseFrameHeader(b []byte) (frameHeader, error) {
	if len(b) < frameHeaderSize || !bytes.Equal(b[:4], frameMagic) ||
		crc32.Checksum(b[8:frameHeaderSize], castagnoli) != binary.LittleEndian.Uint32(b[4:]) {
		return frameHeader{}, errDamaged
	}
	bodyLen, lines := binary.LittleEndian.Uint32(b[12:]), binary.LittleEndian.Uint32(b[48:])
	h := frameHeader{
		bodySum: binary.LittleEndian.Uint32(b[8:]),
		bodyLen: int(bodyLen),
		id:      binary.LittleEndian.Uint64(b[16:]),
		batch:   binary.LittleEndian.Uint64(b[24:]),
		line:    binary.LittleEndian.Uint64(b[32:]),
		time:    int64(binary.LittleEndian.Uint64(b[40:])),
		lines:   int(lines),
	}
	if bodyLen > maxBody || lines == 0 || lines > bodyLen ||
		h.line >= maxNumber || h.batch >= maxNumber || binary.LittleEndian.Uint32(b[52:]) != 0 {
		return frameHeader{}, errDamaged
	}
	return h, nil
}

// check returns errDamaged unless body, the frame's whole body, is what the
// header says.
func (h *frameHeader) check(body []byte) error {
	if crc32.Checksum(body, castagnoli) != h.bodySum || body[len(body)-1] != '\n' || countLines(body) != h.lines {
		return errDamaged
	}
	return nil
}

type cursor struct {
	version uint32
	count   uint64
	line    uint64
	batch   uint64
	next    uint64
	ends    [MaxInFlight]uint64
	file    uint64
}

func appendCursor(dst []byte, c cursor) []byte {
	start := len(dst)
	dst = append(dst, cursorMagic...)
	dst = binary.LittleEndian.AppendUint32(dst, c.version)
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	dst = binary.LittleEndian.AppendUint64(dst, c.count)
	dst = binary.LittleEndian.AppendUint64(dst, c.line)
	dst = binary.LittleEndian.AppendUint64(dst, c.batch)
	dst = binary.LittleEndian.AppendUint64(dst, c.next)
	for _, end := range c.ends {
		dst = binary.LittleEndian.AppendUint64(dst, end)
	}
	dst = binary.LittleEndian.AppendUint64(dst, c.file)
	dst = append(dst, 0, 0, 0, 0)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// parseCursor returns errDamaged unless b begins with a sound slot. Fields of
// a version that is not formatVersion mean nothing.
func parseCursor(b []byte) (cursor, error) {
	if len(b) < cursorSize || !bytes.Equal(b[:8], cursorMagic) ||
		crc32.Checksum(b[:124], castagnoli) != binary.LittleEndian.Uint32(b[124:]) {
		return cursor{}, errDamaged
	}
	c := cursor{
		version: binary.LittleEndian.Uint32(b[8:]),
		count:   binary.LittleEndian.Uint64(b[16:]),
		line:    binary.LittleEndian.Uint64(b[24:]),
		batch:   binary.LittleEndian.Uint64(b[32:]),
		next:    binary.LittleEndian.Uint64(b[40:]),
		file:    binary.LittleEndian.Uint64(b[112:]),
	}
	for i := range c.ends {
		c.ends[i] = binary.LittleEndian.Uint64(b[48+8*i:])
	}
	if c.version == formatVersion && (c.count == 0 || c.count >= maxNumber || c.line >= maxNumber || c.batch >= maxNumber || c.next >= maxNumber) {
		return cursor{}, errDamaged
	}
	return c, nil
}

// countLines is the number of line ends in b.
func countLines(b []byte) int { return bytes.Count(b, []byte{'\n'}) }

// skipLines is the length of the first n lines of b, which has as many.
func skipLines(b []byte, n uint64) int {
	at := 0
	for ; n > 0; n-- {
		at += bytes.IndexByte(b[at:], '\n') + 1
	}
	return at
}
