package framed

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"
)

// A segment is one file: a header block, then batches, each at the first
// multiple of the block size behind the one before. What is between is zero.
// Behind the last batch anything may follow, also batches of an earlier use of
// the file, which have another segment id. Numbers are little-endian, times are
// unix nanoseconds, checksums CRC-32C (Castagnoli).
//
//	Segment header, 4096 bytes
//	  offset  size  field
//	       0     8  magic: 89 52 57 46 0D 0A 1A 0A
//	       8     4  format version: 1
//	      12     4  block size in bytes: 512, 1024, 2048 or 4096
//	      16     8  segment id: random, another one each time the file is begun
//	      24     8  generation: rises with each segment that its writer begins
//	      32     8  time of creation
//	      40    20  zero
//	      60     4  checksum of bytes 0-59
//	      64  4032  zero
//
//	Batch header, 64 bytes
//	  offset  size  field
//	       0     4  magic: FF 52 57 42
//	       4     4  checksum of bytes 8-63
//	       8     2  format version: 1
//	      10     2  block size ÷ 512
//	      12     4  where it stands: offset in the file ÷ 512
//	      16     8  segment id
//	      24     8  generation
//	      32     8  batch number: random writer number << 32 + count
//	      40     8  number of records before it in the segment
//	      48     8  time when it was sealed
//	      56     4  length in bytes, with this header and without what fills the block
//	      60     4  number of records; 0: the segment ends here
//
//	Record, without gaps behind the batch header
//	  offset  size  field
//	       0     4  checksum of the batch number (8 bytes), then bytes 4 to 8+n
//	       4     4  length n in bytes
//	       8     n  the record
const (
	SegmentHeaderSize = 4096 // bytes; the first batch stands behind it
	BatchHeaderSize   = 64   // bytes
	RecordHeaderSize  = 8    // bytes

	// MinBlock and MaxBlock bound the block size in bytes, a power of two.
	MinBlock = 512
	MaxBlock = 4096

	// MaxBatch bounds the length of a batch in bytes.
	MaxBatch = 1 << 30

	formatVersion = 1
	headerFields  = 64 // bytes of the segment header that are not zero
	placeUnit     = 512

	maxNumber = 1 << 62 // bounds what counts of records are believed
)

var (
	segmentMagic = []byte("\x89RWF\r\n\x1a\n")
	batchMagic   = []byte("\xffRWB")

	castagnoli = crc32.MakeTable(crc32.Castagnoli)

	errDamaged = errors.New("checksum or structure is wrong")
)

// UnsupportedError reports a segment that a newer version of the program wrote.
type UnsupportedError struct{ Version uint32 }

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("framed segment of format version %d, which this version does not know", e.Version)
}

// Header is what the header of a segment says.
type Header struct {
	Block      int       // bytes
	ID         uint64    // random
	Generation uint64    // rises with each segment of a writer
	Created    time.Time //
}

// putHeader fills dst, SegmentHeaderSize bytes.
func putHeader(dst []byte, h *Header) {
	clear(dst)
	copy(dst, segmentMagic)
	binary.LittleEndian.PutUint32(dst[8:], formatVersion)
	binary.LittleEndian.PutUint32(dst[12:], uint32(h.Block))
	binary.LittleEndian.PutUint64(dst[16:], h.ID)
	binary.LittleEndian.PutUint64(dst[24:], h.Generation)
	binary.LittleEndian.PutUint64(dst[32:], uint64(h.Created.UnixNano()))
	binary.LittleEndian.PutUint32(dst[60:], crc32.Checksum(dst[:60], castagnoli))
}

// ParseHeader reads the header that b begins with. The error is an
// UnsupportedError for that of another version.
func ParseHeader(b []byte) (Header, error) {
	if len(b) < headerFields || !bytes.Equal(b[:8], segmentMagic) ||
		crc32.Checksum(b[:60], castagnoli) != binary.LittleEndian.Uint32(b[60:]) {
		return Header{}, errDamaged
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != formatVersion {
		return Header{}, &UnsupportedError{v}
	}
	h := Header{
		Block:      int(binary.LittleEndian.Uint32(b[12:])),
		ID:         binary.LittleEndian.Uint64(b[16:]),
		Generation: binary.LittleEndian.Uint64(b[24:]),
		Created:    time.Unix(0, int64(binary.LittleEndian.Uint64(b[32:]))),
	}
	if !blockAllowed(h.Block) {
		return Header{}, errDamaged
	}
	return h, nil
}

// IsSegment reports whether b, the first bytes of a file, begin like a segment.
func IsSegment(b []byte) bool { return bytes.HasPrefix(b, segmentMagic) }

func blockAllowed(n int) bool { return n >= MinBlock && n <= MaxBlock && n&(n-1) == 0 }

// batchHeader is the first 64 bytes of a batch.
type batchHeader struct {
	block      int   // of the segment, bytes
	offset     int64 // in the file, a multiple of placeUnit
	id         uint64
	generation uint64
	number     uint64
	before     uint64 // records in the segment
	sealed     int64
	size       int // bytes, without what fills the block
	records    int
}

// sensible reports whether the fields are what a writer may have written.
func (h *batchHeader) sensible() bool {
	return blockAllowed(h.block) && h.records >= 0 && h.size >= BatchHeaderSize && h.size <= MaxBatch && h.before <= maxNumber &&
		int64(h.records)*RecordHeaderSize <= int64(h.size-BatchHeaderSize) && (h.records == 0) == (h.size == BatchHeaderSize)
}

// end is the offset behind the batch's last record.
func (h *batchHeader) end() int64 { return h.offset + int64(h.size) }

// put fills dst, BatchHeaderSize bytes.
func (h *batchHeader) put(dst []byte) {
	copy(dst, batchMagic)
	binary.LittleEndian.PutUint16(dst[8:], formatVersion)
	binary.LittleEndian.PutUint16(dst[10:], uint16(h.block/placeUnit))
	binary.LittleEndian.PutUint32(dst[12:], uint32(h.offset/placeUnit))
	binary.LittleEndian.PutUint64(dst[16:], h.id)
	binary.LittleEndian.PutUint64(dst[24:], h.generation)
	binary.LittleEndian.PutUint64(dst[32:], h.number)
	binary.LittleEndian.PutUint64(dst[40:], h.before)
	binary.LittleEndian.PutUint64(dst[48:], uint64(h.sealed))
	binary.LittleEndian.PutUint32(dst[56:], uint32(h.size))
	binary.LittleEndian.PutUint32(dst[60:], uint32(h.records))
	binary.LittleEndian.PutUint32(dst[4:], crc32.Checksum(dst[8:BatchHeaderSize], castagnoli))
}

// parseBatchHeader returns errDamaged unless b begins with a sound batch header
// that makes sense.
func parseBatchHeader(b []byte) (batchHeader, error) {
	if len(b) < BatchHeaderSize || !bytes.Equal(b[:4], batchMagic) ||
		crc32.Checksum(b[8:BatchHeaderSize], castagnoli) != binary.LittleEndian.Uint32(b[4:]) {
		return batchHeader{}, errDamaged
	}
	h := batchFields(b)
	if binary.LittleEndian.Uint16(b[8:]) != formatVersion || !h.sensible() {
		return batchHeader{}, errDamaged
	}
	return h, nil
}

// batchFields returns what b says, which may be nonsense.
func batchFields(b []byte) batchHeader {
	return batchHeader{
		block:      int(binary.LittleEndian.Uint16(b[10:])) * placeUnit,
		offset:     int64(binary.LittleEndian.Uint32(b[12:])) * placeUnit,
		id:         binary.LittleEndian.Uint64(b[16:]),
		generation: binary.LittleEndian.Uint64(b[24:]),
		number:     binary.LittleEndian.Uint64(b[32:]),
		before:     binary.LittleEndian.Uint64(b[40:]),
		sealed:     int64(binary.LittleEndian.Uint64(b[48:])),
		size:       int(binary.LittleEndian.Uint32(b[56:])),
		records:    int(binary.LittleEndian.Uint32(b[60:])),
	}
}

func roundUp(n int64, block int) int64 { return (n + int64(block) - 1) &^ (int64(block) - 1) }
