package framed

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"sync/atomic"
	"time"
)

// Numbers gives out batch numbers: one Numbers for each writer, whose batches
// and those of all others then have different numbers. It is safe for
// concurrent use.
type Numbers struct{ last atomic.Uint64 }

// NewNumbers returns numbers that begin at a random place.
func NewNumbers() *Numbers {
	var n Numbers
	n.last.Store(random() << 32)
	return &n
}

// Next returns a number that was not given out before.
func (n *Numbers) Next() uint64 { return n.last.Add(1) }

func random() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}

// A Seed ties records to the batch for which they are framed. Two batches of
// one writer have different seeds unless four billion others are between them,
// and a record that is sound under one seed never is under another.
type Seed uint32

// SeedOf returns the seed of the batch with that number.
func SeedOf(number uint64) Seed {
	sum := ^uint32(0)
	for range 8 { // by hand: a slice for crc32.Checksum would be on the heap
		sum = castagnoli[byte(sum)^byte(number)] ^ sum>>8
		number >>= 8
	}
	return Seed(^sum)
}

// RecordSize returns how many bytes of a batch a record of n bytes takes.
func RecordSize(n int) int { return RecordHeaderSize + n }

// pieceSize is how much of a record is copied before its checksum is taken: so
// much is still in the nearest cache.
const pieceSize = 16 << 10

// PutRecord frames record in slot, which is RecordSize(len(record)) bytes long.
// It does not keep record. Records of one batch may be put by several
// goroutines at once, each into a slot of its own.
func (s Seed) PutRecord(slot, record []byte) {
	_ = slot[RecordHeaderSize+len(record)-1]
	binary.LittleEndian.PutUint32(slot[4:], uint32(len(record)))
	n := min(len(record), pieceSize)
	copy(slot[RecordHeaderSize:], record[:n])
	sum := crc32.Update(uint32(s), castagnoli, slot[4:RecordHeaderSize+n])
	for slotRest := slot[RecordHeaderSize:]; n < len(record); {
		end := min(n+pieceSize, len(record))
		copy(slotRest[n:], record[n:end])
		sum = crc32.Update(sum, castagnoli, slotRest[n:end])
		n = end
	}
	binary.LittleEndian.PutUint32(slot, sum)
}

// Segment is a file that is being written: where its next batch goes. It is a
// plain value and not safe for concurrent use.
//
// After a write that failed, the same bytes are written again at the same
// place, or nothing more goes into this segment: what had been sealed and not
// written is sealed again, into the next one. A file that is begun anew gets
// its header before its batches, also on the disk (fsync between them) if what
// is written is to survive a power cut.
type Segment struct {
	Header
	Next    int64  // offset of the next batch in the file, bytes
	Records uint64 // in all batches so far
}

// NewSegment begins a segment with batches at multiples of block bytes: what
// direct I/O on the file asks for, at least MinBlock.
func NewSegment(block int, generation uint64) (Segment, error) {
	if !blockAllowed(block) {
		return Segment{}, fmt.Errorf("framed: the block size is %d, allowed is a power of two from %d to %d", block, MinBlock, MaxBlock)
	}
	h := Header{Block: block, ID: random(), Generation: generation, Created: time.Now()}
	return Segment{Header: h, Next: SegmentHeaderSize}, nil
}

// PutHeader fills dst, SegmentHeaderSize bytes, which go to the beginning of
// the file.
func (s *Segment) PutHeader(dst []byte) { putHeader(dst[:SegmentHeaderSize], &s.Header) }

// Seal makes a batch of buf: its first BatchHeaderSize bytes become the header,
// up to used there are that many records, framed with the seed of number. It
// returns buf up to the end of a block, filled with zeros, to be written at
// what was s.Next; len(buf) must allow it. Batches that are written by one call
// are sealed in their order. Sealing the same buffer once more, as for another
// segment, is allowed.
//
// A batch of no records (used is BatchHeaderSize) says that the segment is
// complete; then no other follows.
func (s *Segment) Seal(buf []byte, used, records int, number uint64) []byte {
	h := batchHeader{
		block: s.Block, offset: s.Next, id: s.ID, generation: s.Generation, number: number, before: s.Records,
		sealed: time.Now().UnixNano(), size: used, records: records,
	}
	h.put(buf[:BatchHeaderSize])
	whole := buf[:roundUp(int64(used), s.Block)]
	clear(whole[used:])
	s.Next += int64(len(whole))
	s.Records += uint64(records)
	return whole
}
