package slabfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/rollway/rollway/internal/recordlog"
)

// The file is a header, a table of descriptors, the slabs, and room for lines
// that are longer than a slab. All but the last is mapped. File headers are those
// of package recordlog; other numbers are in the byte order of the machine that
// wrote them. Where two numbers share 8 bytes, the first is the low half.
// docs/FORMAT.md has the same tables.
//
//	Header, 4096 bytes
//	  offset  size  field
//	       0    64  file header with the kind 50; its body is the next 32 bytes
//	      64     8  01020304 (hex), which shows the byte order
//	      72     8  size of a slab in bytes
//	      80     8  number of slabs
//	      88     8  longest line in bytes; no more than a slab: no line room
//	      96     8  state: 1 = ready; 2 = being built or given up, nothing after the header counts
//	     104     8  process id of the last holder of the lock
//	     112    64  file header with the kind 50 for the owner, which filled the slabs last: the
//	                id is its process id, the time that at which it opened the file
//	     176     n  the body of that: the name of the owner's program, at most 232 bytes
//
//	Descriptor of slab i, 64 bytes, at 4096 + 64 i
//	       0     8  sequence number: the order in which slabs were begun; 0 = free, and all but the tag does not count
//	       8     8  committed: so many bytes of the slab are whole lines; how many lines these are
//	      16     8  delivered: so many of the bytes the destination has taken; flags: bit 0 = one line, in line room i instead of the slab
//	      24     8  mark of the current write: volume of the file
//	      32     8  its inode
//	      40     8  offset at which the write begins
//	      48     8  delivered when it began; checksum of bytes 0-7 and 24-51, 0: no mark
//	      56     8  checksum of bytes 0-15 and of the committed bytes, once the slab is filled no more, 0: none; tag: checksum of the header's bytes 64-95 and of i, 8 bytes
//
//	Slab i, at T + S i, where
//	  T = 4096 + 64 × number of slabs, rounded up to 4096
//	  S = size of a slab, rounded up to 4096
//	Line room i, at T + S × number of slabs + L i, where
//	  L = longest line, rounded up to 4096
const (
	headerSize     = 4096
	constantSize   = 96
	descriptorSize = 64
	alignment      = 4096
	orderMark      = 0x01020304

	offGeometry  = recordlog.HeaderSize
	offState     = 96
	offHolder    = 104
	offOwner     = 112
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
	maxSeq    = 1 << 63 // a number from here on is damage
)

var native = binary.NativeEndian

// ErrForeign is what the error of Open wraps for a file that is not a slab file. It
// is never written to. ErrDamaged means that a slab file is damaged.
var (
	ErrForeign = errors.New("not a file of slabs")
	ErrDamaged = errors.New("damaged")
)

// Geometry says what a file has room for.
type Geometry struct {
	SlabSize  int // bytes, 64 to 1<<30
	SlabCount int // 1 to 65536
	// LineLimit is the longest line in bytes that BeginLine takes, up to 1<<30.
	// If it is at most SlabSize, there is no room for such lines.
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

// slabAt returns the offset of slab i.
func (g Geometry) slabAt(i int) int64 {
	first := headerSize + roundUp(descriptorSize*int64(g.SlabCount))
	return first + int64(i)*roundUp(int64(g.SlabSize))
}

// mapped returns the size of everything before the line rooms.
func (g Geometry) mapped() int64 { return g.slabAt(g.SlabCount) }

// lineAt returns the offset of line room i.
func (g Geometry) lineAt(i int) int64 { return g.mapped() + int64(i)*roundUp(int64(g.LineLimit)) }

// header returns the first page of a file with the geometry g.
func (g Geometry) header() []byte {
	var body []byte
	for _, n := range []int{orderMark, g.SlabSize, g.SlabCount, g.LineLimit} {
		body = native.AppendUint64(body, uint64(n))
	}
	h := recordlog.Header{Kind: recordlog.SlabFile, ID: recordlog.NewID()}
	return recordlog.AppendFile(make([]byte, 0, headerSize), h, body)[:headerSize]
}

// table returns the descriptors of a file that begins with header, all free.
func (g Geometry) table(header []byte) []byte {
	p := make([]byte, descriptorSize*g.SlabCount)
	for i := range g.SlabCount {
		tag := recordlog.Checksum(native.AppendUint64(bytes.Clone(header[offGeometry:constantSize]), uint64(i)))
		native.PutUint64(p[descriptorSize*i+dSeal:], pair(0, tag))
	}
	return p
}

// pair returns a word of two numbers, with low as the first.
func pair(low, high uint32) uint64 { return uint64(high)<<32 | uint64(low) }

// Committed returns the word of a slab that begins with so many bytes of whole lines.
func Committed(bytes, lines int) uint64 { return pair(uint32(bytes), uint32(lines)) }

// parseHeader reads the header at the beginning of p, which may be shorter.
func parseHeader(p []byte) (g Geometry, ready bool, err error) {
	bad := func(format string, args ...any) (Geometry, bool, error) {
		return Geometry{}, false, fmt.Errorf(format+": %w", append(args, ErrDamaged)...)
	}
	magic := recordlog.SlabFile.Magic()
	switch {
	case bytes.HasPrefix(magic[:], p):
		return bad("it ends after %d bytes", len(p))
	case len(bytes.Trim(p, "\x00")) == 0:
		return bad("the header is zeros")
	case !bytes.HasPrefix(p, magic[:]):
		return g, false, ErrForeign
	case len(p) < headerSize:
		return bad("the header ends after %d bytes", len(p))
	}
	_, body, err := recordlog.ParseFile(p, recordlog.SlabFile, "")
	if newer, ok := errors.AsType[*recordlog.UnsupportedError](err); ok {
		return g, false, fmt.Errorf("%s is not known to this version: %w", newer.What, errors.ErrUnsupported)
	}
	if err != nil || len(body) != constantSize-offGeometry {
		return bad("the header's checksum does not fit")
	}
	switch order := native.Uint64(body); order {
	case orderMark:
	case bits.ReverseBytes64(orderMark):
		return g, false, fmt.Errorf("a machine of the other byte order wrote it: %w", errors.ErrUnsupported)
	default:
		return bad("the header has %#x for the byte order", order)
	}
	number := func(at int) int { return int(min(native.Uint64(body[at:]), math.MaxInt32)) }
	g = Geometry{SlabSize: number(8), SlabCount: number(16), LineLimit: number(24)}
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

// Owner names the process that filled the slabs of a file.
type Owner struct {
	PID    int // 0: unknown
	Name   string
	Opened time.Time
}

func (o Owner) String() string {
	if o.PID == 0 {
		return "an unknown process"
	}
	return fmt.Sprintf("%s (process %d, started to use it at %s)", o.Name, o.PID, o.Opened.UTC().Format(time.RFC3339))
}

// bytes returns o as the header has it. A long name is cut.
func (o Owner) bytes() []byte {
	h := recordlog.Header{Kind: recordlog.SlabFile, ID: uint64(o.PID), Created: o.Opened.UnixNano()}
	return recordlog.AppendFile(nil, h, []byte(o.Name[:min(len(o.Name), maxOwnerName)]))
}

// parseOwner returns the zero Owner if a kill has torn it.
func parseOwner(p []byte) Owner {
	h, name, err := recordlog.ParseFile(p, recordlog.SlabFile, "")
	if err != nil {
		return Owner{}
	}
	return Owner{PID: int(h.ID), Name: string(name), Opened: time.Unix(0, h.Created)}
}
