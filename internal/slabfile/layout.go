package slabfile

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// The file is a header, a table of descriptors, the slabs, and behind them room
// for lines that are longer than a slab. Only the latter is not mapped. Numbers
// are in the byte order of the machine that wrote them, times are unix
// nanoseconds, checksums CRC-32C (Castagnoli). docs/FORMAT.md has the same
// tables.
//
//	Header, 4096 bytes
//	  offset  size  field
//	       0     8  magic: 89 52 57 53 0D 0A 1A 0A
//	       8     4  format version: 1
//	      12     4  01020304 (hex), which shows the byte order
//	      16     8  size of a slab in bytes
//	      24     8  number of slabs
//	      32     8  longest line in bytes; no more than a slab: no line room
//	      40    16  id: random, made with the geometry
//	      56     4  zero
//	      60     4  checksum of bytes 0-59
//	      64     8  state: 0 = being built, nothing behind the header counts; 1 = ready
//	      72     8  process id of the holder of the lock, 0 if it was given back
//	      80     8  greatest sequence number that was delivered
//	      88   168  zero
//	     256     8  process id of the owner: who filled the slabs last
//	     264     8  time at which the owner opened the file
//	     272     4  length n of the owner's name, at most 232
//	     276     4  checksum of bytes 256-275 and of the name
//	     280     n  the owner's name: its program's
//
//	Descriptor of slab i, 64 bytes, at 4096 + 64 i
//	       0     8  sequence number: the order in which slabs were begun; 0 = free, the rest is not looked at
//	       8     8  committed: so many bytes of the slab are whole lines
//	      16     8  delivered: so many of them the destination has taken
//	      24     8  mark of the write under way: volume of the file
//	      32     8  its inode
//	      40     8  offset at which the write begins
//	      48     4  delivered when it began
//	      52     4  checksum of sequence number and bytes 24-51, never 0; 0: no mark
//	      56     4  flags: bit 0 = one line, in line room i instead of the slab
//	      60     4  zero
//
//	Slab i, at T + S i, where
//	  T = 4096 + 64 × number of slabs, rounded up to 4096
//	  S = size of a slab, rounded up to 4096
//	Line room i, at T + S × number of slabs + L i, where
//	  L = longest line, rounded up to 4096
const (
	headerSize     = 4096
	constantSize   = 64
	descriptorSize = 64
	alignment      = 4096
	formatVersion  = 1
	orderMark      = 0x01020304

	offState     = 64
	offHolder    = 72
	offDelivered = 80
	offOwner     = 256
	ownerHead    = 24
	maxOwnerName = 232

	stateBuilding = 0
	stateReady    = 1

	dSeq       = 0
	dCommitted = 8
	dDelivered = 16
	dVolume    = 24
	dInode     = 32
	dOffset    = 40
	dMark      = 48 // base and checksum
	dFlags     = 56

	flagLine = 1

	maxLength = 1 << 30 // of a slab and of a line
	maxSlabs  = 1 << 16
)

var (
	magic      = []byte{0x89, 'R', 'W', 'S', '\r', '\n', 0x1a, '\n'}
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	native     = binary.NativeEndian
)

// ErrForeign is what the error of Open wraps when the file is something else.
// ErrDamaged: it was a file of this kind. Neither is ever written to.
var (
	ErrForeign = errors.New("not a file of slabs")
	ErrDamaged = errors.New("damaged")
)

// Geometry says what a file has room for.
type Geometry struct {
	SlabSize  int // bytes, 64 to 1<<30
	SlabCount int // 1 to 65536
	// LineLimit is the longest line in bytes that BeginLine takes, up to 1<<30.
	// If it is no more than SlabSize there is no room for such lines.
	LineLimit int
}

func (g Geometry) check() error {
	switch {
	case g.SlabSize < 64 || g.SlabSize > maxLength:
		return fmt.Errorf("the slab size is %d bytes, allowed is 64 to %d", g.SlabSize, maxLength)
	case g.SlabCount < 1 || g.SlabCount > maxSlabs:
		return fmt.Errorf("the number of slabs is %d, allowed is 1 to %d", g.SlabCount, maxSlabs)
	case g.LineLimit < 0 || g.LineLimit > maxLength:
		return fmt.Errorf("the longest line is %d bytes, allowed is 0 to %d", g.LineLimit, maxLength)
	case g.mapped() > math.MaxInt:
		return fmt.Errorf("%d slabs of %d bytes do not fit the address space", g.SlabCount, g.SlabSize)
	}
	return nil
}

// normal is g as the header has it.
func (g Geometry) normal() Geometry {
	if g.LineLimit <= g.SlabSize {
		g.LineLimit = 0
	}
	return g
}

func roundUp(n int64) int64 { return (n + alignment - 1) &^ (alignment - 1) }

// slabsAt is the offset of the first slab.
func (g Geometry) slabsAt() int64 { return headerSize + roundUp(descriptorSize*int64(g.SlabCount)) }

// slabAt is the offset of slab i.
func (g Geometry) slabAt(i int) int64 { return g.slabsAt() + int64(i)*roundUp(int64(g.SlabSize)) }

// mapped is the size of all but the room for long lines.
func (g Geometry) mapped() int64 { return g.slabAt(g.SlabCount) }

// lineAt is the offset of line room i.
func (g Geometry) lineAt(i int) int64 { return g.mapped() + int64(i)*roundUp(int64(g.LineLimit)) }

// appendHeader appends the constant part of a header to dst.
func appendHeader(dst []byte, g Geometry, id [16]byte) []byte {
	start := len(dst)
	dst = append(dst, magic...)
	dst = native.AppendUint32(dst, formatVersion)
	dst = native.AppendUint32(dst, orderMark)
	dst = native.AppendUint64(dst, uint64(g.SlabSize))
	dst = native.AppendUint64(dst, uint64(g.SlabCount))
	dst = native.AppendUint64(dst, uint64(g.LineLimit))
	dst = append(dst, id[:]...)
	dst = native.AppendUint32(dst, 0)
	return native.AppendUint32(dst, sum(dst[start:]))
}

func sum(p []byte) uint32 { return crc32.Checksum(p, castagnoli) }

func newID() (id [16]byte) {
	rand.Read(id[:]) // never fails
	return id
}

// checkMagic tells a file of another kind from one of which the first page did
// not reach the disk, or not whole.
func checkMagic(p []byte) error {
	if bytes.HasPrefix(p, magic) {
		return nil
	}
	mended := bytes.Clone(p)
	copy(mended, magic)
	switch {
	case bytes.HasPrefix(magic, p):
		return fmt.Errorf("it ends after %d bytes: %w", len(p), ErrDamaged)
	case len(bytes.Trim(p, "\x00")) == 0:
		return fmt.Errorf("the header is zeros: %w", ErrDamaged)
	case len(p) >= headerSize && native.Uint32(p[60:]) == sum(mended[:60]):
		return fmt.Errorf("its first bytes are %x: %w", p[:len(magic)], ErrDamaged)
	}
	return ErrForeign
}

// parseHeader reads the header at the beginning of p, which may be shorter than
// a header.
func parseHeader(p []byte) (g Geometry, ready bool, err error) {
	if err := checkMagic(p); err != nil {
		return g, false, err
	}
	if len(p) < headerSize {
		return g, false, fmt.Errorf("the header ends after %d bytes: %w", len(p), ErrDamaged)
	}
	switch v, mark := native.Uint32(p[8:]), native.Uint32(p[12:]); {
	case mark == 0x04030201:
		return g, false, fmt.Errorf("a machine of the other byte order wrote it: %w", errors.ErrUnsupported)
	case native.Uint32(p[60:]) != sum(p[:60]):
		return g, false, fmt.Errorf("the header's checksum does not fit: %w", ErrDamaged)
	case v != formatVersion:
		return g, false, fmt.Errorf("it has format version %d, this program knows %d: %w", v, formatVersion, errors.ErrUnsupported)
	case mark != orderMark:
		return g, false, fmt.Errorf("the header holds %#x for the byte order: %w", mark, ErrDamaged)
	}
	size, count, line := native.Uint64(p[16:]), native.Uint64(p[24:]), native.Uint64(p[32:])
	if max(size, count, line) > math.MaxInt32 {
		return g, false, fmt.Errorf("the header names %d slabs of %d bytes and lines of %d: %w", count, size, line, ErrDamaged)
	}
	g = Geometry{SlabSize: int(size), SlabCount: int(count), LineLimit: int(line)}
	if err := g.check(); err != nil {
		return g, false, fmt.Errorf("%w: %w", err, ErrDamaged)
	}
	switch state := native.Uint64(p[offState:]); state {
	case stateReady:
		return g, true, nil
	case stateBuilding:
		return g, false, nil
	default:
		return g, false, fmt.Errorf("the header's state is %d: %w", state, ErrDamaged)
	}
}
