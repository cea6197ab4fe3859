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

// The file is a header, a table of descriptors, the slabs, and room for lines
// that are longer than a slab. All but the last is mapped. Numbers are in the
// byte order of the machine that wrote them, times are unix nanoseconds,
// checksums CRC-32C (Castagnoli). Where two numbers share 8 bytes, the first is
// the low half. docs/FORMAT.md has the same tables.
//
//	Header, 4096 bytes
//	  offset  size  field
//	       0     8  magic: 89 52 57 50 0D 0A 1A 0A
//	       8     4  format version: 1
//	      12     4  01020304 (hex), which shows the byte order
//	      16     8  size of a slab in bytes
//	      24     8  number of slabs
//	      32     8  longest line in bytes; no more than a slab: no line room
//	      40    16  id: random, made with the geometry
//	      56     4  zero
//	      60     4  checksum of bytes 0-59
//	      64     8  state: 1 = ready; 2 = being built or given up, nothing after the header counts
//	      72     8  process id of the last holder of the lock
//	      80     8  process id of the owner: the process that filled the slabs last
//	      88     8  time at which the owner opened the file
//	      96     4  length n of the owner's name, at most 232
//	     100     4  checksum of bytes 80-99 and of the name
//	     104     n  the owner's name: its program's
//
//	Descriptor of slab i, 64 bytes, at 4096 + 64 i
//	       0     8  sequence number: the order in which slabs were begun; 0 = free, and all but the tag does not count
//	       8     8  committed: so many bytes of the slab are whole lines; how many lines these are
//	      16     8  delivered: so many of the bytes the destination has taken; flags: bit 0 = one line, in line room i instead of the slab
//	      24     8  mark of the write under way: volume of the file
//	      32     8  its inode
//	      40     8  offset at which the write begins
//	      48     8  delivered when it began; checksum of bytes 0-7 and 24-51, 0: no mark
//	      56     8  checksum of bytes 0-15 and of the committed bytes, once the slab is filled no more, 0: none; tag: checksum of the header's bytes 0-39 and of i, 8 bytes
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
	offOwner     = 80
	ownerHead    = 24
	maxOwnerName = 232

	stateReady = 1
	stateVoid  = 2

	dSeq       = 0
	dCommitted = 8
	dDelivered = 16
	dVolume    = 24
	dInode     = 32
	dOffset    = 40
	dMark      = 48
	dSeal      = 56

	flagLine = 1

	maxLength = 1 << 30 // of a slab and of a line
	maxSlabs  = 1 << 16
	maxSeq    = 1 << 63 // more than is ever reached: what is not below it is damage
)

var (
	magic      = []byte{0x89, 'R', 'W', 'P', '\r', '\n', 0x1a, '\n'}
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	native     = binary.NativeEndian
)

// ErrForeign is what the error of Open wraps when the file is something else,
// which is never written to. ErrDamaged: it was a file of slabs.
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

func roundUp(n int64) int64 { return (n + alignment - 1) &^ (alignment - 1) }

// slabAt is the offset of slab i.
func (g Geometry) slabAt(i int) int64 {
	first := headerSize + roundUp(descriptorSize*int64(g.SlabCount))
	return first + int64(i)*roundUp(int64(g.SlabSize))
}

// mapped is the size of all but the room for long lines.
func (g Geometry) mapped() int64 { return g.slabAt(g.SlabCount) }

// lineAt is the offset of line room i.
func (g Geometry) lineAt(i int) int64 { return g.mapped() + int64(i)*roundUp(int64(g.LineLimit)) }

// header is the first page of a file with the geometry g.
func (g Geometry) header() []byte {
	p := append(make([]byte, 0, headerSize), magic...)
	p = native.AppendUint32(p, formatVersion)
	p = native.AppendUint32(p, orderMark)
	p = native.AppendUint64(p, uint64(g.SlabSize))
	p = native.AppendUint64(p, uint64(g.SlabCount))
	p = native.AppendUint64(p, uint64(g.LineLimit))
	p = p[:headerSize]
	rand.Read(p[40:56]) // never fails
	native.PutUint32(p[60:], sum(p[:60]))
	return p
}

// table is the descriptors of a file that begins with header, all free.
func (g Geometry) table(header []byte) []byte {
	p := make([]byte, descriptorSize*g.SlabCount)
	for i := range g.SlabCount {
		var n [8]byte
		native.PutUint64(n[:], uint64(i))
		tag := crc32.Update(sum(header[:40]), castagnoli, n[:])
		native.PutUint64(p[descriptorSize*i+dSeal:], pair(0, tag))
	}
	return p
}

func sum(p []byte) uint32 { return crc32.Checksum(p, castagnoli) }

// pair is a word of two numbers, of which low is the first.
func pair(low, high uint32) uint64 { return uint64(high)<<32 | uint64(low) }

// Committed is the word of a slab that begins with so many bytes of whole lines.
func Committed(bytes, lines int) uint64 { return pair(uint32(bytes), uint32(lines)) }

// parseHeader reads the header at the beginning of p, which may be shorter than
// a header.
func parseHeader(p []byte) (g Geometry, ready bool, err error) {
	bad := func(format string, args ...any) (Geometry, bool, error) {
		return Geometry{}, false, fmt.Errorf(format+": %w", append(args, ErrDamaged)...)
	}
	named := bytes.HasPrefix(p, magic)
	switch {
	case bytes.HasPrefix(magic, p):
		return bad("it ends after %d bytes", len(p))
	case len(bytes.Trim(p, "\x00")) == 0:
		return bad("the header is zeros")
	case len(p) < headerSize && named:
		return bad("the header ends after %d bytes", len(p))
	case len(p) < headerSize:
		return g, false, ErrForeign
	}
	version, order := native.Uint32(p[8:]), native.Uint32(p[12:])
	sound := native.Uint32(p[60:]) == sum(append(bytes.Clone(magic), p[len(magic):60]...))
	switch {
	case !named && !sound:
		return g, false, ErrForeign
	case !named: // only that was written over
		return bad("its first bytes are %x", p[:len(magic)])
	case order == 0x04030201:
		return g, false, fmt.Errorf("a machine of the other byte order wrote it: %w", errors.ErrUnsupported)
	case !sound:
		return bad("the header's checksum does not fit")
	case version != formatVersion:
		return g, false, fmt.Errorf("it has format version %d, this program knows %d: %w", version, formatVersion, errors.ErrUnsupported)
	case order != orderMark:
		return bad("the header holds %#x for the byte order", order)
	}
	var n [3]int
	for i := range n {
		n[i] = int(min(native.Uint64(p[16+8*i:]), math.MaxInt32))
	}
	g = Geometry{SlabSize: n[0], SlabCount: n[1], LineLimit: n[2]}
	if err := g.check(); err != nil {
		return bad("%w", err)
	}
	switch state := native.Uint64(p[offState:]); state {
	case stateReady:
		return g, true, nil
	case stateVoid:
		return g, false, nil
	default:
		return g, false, fmt.Errorf("the header's state is %d: %w", state, ErrDamaged)
	}
}
