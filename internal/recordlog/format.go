package recordlog

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// Numbers are little-endian, times are unix nanoseconds, checksums CRC-32C
// (Castagnoli). docs/FORMAT.md has the same tables.
//
//	File header, 64 bytes
//	  offset  size  field
//	       0     8  magic: 89 52 57, the kind, 0D 0A 1A 0A
//	       8     4  format version: 1
//	      12     4  flags of the kind
//	      16     8  id: random, repeated in each frame of a segment
//	      24     8  number of the first record
//	      32     8  time of creation
//	      40     8  number of the first record of the segment before; its own if there is none
//	      48     8  length of the body of a small file in bytes
//	      56     4  checksum of that body
//	      60     4  checksum of bytes 0-59
//
//	Frame header, 64 bytes
//	  offset  size  field
//	       0     4  magic: FF 52 57 46
//	       4     4  checksum of bytes 8-63
//	       8     4  checksum of the body
//	      12     4  length of the body in bytes
//	      16     8  number of the first record
//	      24     8  id of the segment
//	      32     8  least time of a record
//	      40     8  greatest time of a record
//	      48     4  number of records, at least 1
//	      52     4  length of the key section in bytes
//	      56     4  length of the lines when unpacked
//	      60     1  codec of the lines: 0 = none, 1 = zstd, 2 = columns
//	      61     1  flags: 1 = the lines are in blocks
//	      62     2  number of idempotency keys
//
//	Body of a frame
//	  the key section, then the lines, each ended by 0A, or blocks

const (
	HeaderSize      = 64 // of a file
	FrameHeaderSize = 64
	Version         = 1

	// MaxBody bounds a body so that a length fits 32 bits on every system.
	MaxBody = 1 << 30

	// SlotSize is the distance of the two slots of a small file that is written in place,
	// in turn.
	SlotSize = 512

	ManifestEntrySize = 72

	// MaxNumber bounds the record numbers that are accepted.
	MaxNumber = 1 << 62
)

const (
	CodecNone    = 0
	CodecZstd    = 1
	CodecColumns = 2 // as package columns makes them
)

// Kind is the kind of a file, the fourth byte of its magic number.
type Kind byte

const (
	JournalSegment Kind = 'J'
	JournalCursor  Kind = 'C'
	Manifest       Kind = 'M'
	History        Kind = 'H'
	SpoolSegment   Kind = 'S'
	SpoolCursor    Kind = 'Q'
	SlabFile       Kind = 'P'
	footerKind     Kind = 'F' // at the end of a sealed segment
)

var kindNames = map[Kind]string{
	JournalSegment: "journal segment",
	JournalCursor:  "journal cursor",
	Manifest:       "journal manifest",
	History:        "journal history",
	SpoolSegment:   "spool segment",
	SpoolCursor:    "spool cursor",
	SlabFile:       "slab file",
}

func (k Kind) String() string { return kindNames[k] }

// Magic returns the first bytes of a file of the kind.
func (k Kind) Magic() [8]byte { return [8]byte{0x89, 'R', 'W', byte(k), '\r', '\n', 0x1a, '\n'} }

// NewID returns a random id for a file.
func NewID() uint64 {
	var id [8]byte
	rand.Read(id[:]) // never fails
	return binary.LittleEndian.Uint64(id[:])
}

// KindOf returns the kind of the file that begins with b, or 0.
func KindOf(b []byte) Kind {
	if len(b) >= 8 && kindNames[Kind(b[3])] != "" && [8]byte(b) == Kind(b[3]).Magic() {
		return Kind(b[3])
	}
	return 0
}

var (
	// frameMagic begins with FF, which no UTF-8 text has, and so no line.
	frameMagic = []byte("\xffRWF")

	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// Checksum returns the checksum of b.
func Checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// Extend returns the checksum of what sum is of, followed by b.
func Extend(sum uint32, b []byte) uint32 { return crc32.Update(sum, castagnoli, b) }

// ErrDamaged means that bytes are not what was written, ErrTorn that the file ends within a
// frame. Both are returned unwrapped.
var (
	ErrDamaged = errors.New("checksum or structure is wrong")
	ErrTorn    = errors.New("the file ends within a frame")
)

// IsDamage reports whether err means that a file's bytes are wrong, not that they could not
// be read.
func IsDamage(err error) bool { return err == ErrDamaged || err == ErrTorn }

// UnsupportedError reports a file or frame of a newer version. It is not damage: nothing is
// cut or skipped.
type UnsupportedError struct {
	File string // path
	Pos  int64  // of the frame in bytes; 0: of the file header
	What string // the field and its value
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("read %s at byte %d: %s is not known to this version; open it with the version that wrote it", e.File, e.Pos, e.What)
}

// Header is the first 64 bytes of every file.
type Header struct {
	Kind    Kind
	Version uint32 // encoding 0 writes Version
	Flags   uint32
	ID      uint64
	First   uint64
	Created int64
	Prev    uint64

	bodyLen int64
	bodySum uint32
}

// Append appends the header to dst.
func (h *Header) Append(dst []byte) []byte {
	start := len(dst)
	magic := h.Kind.Magic()
	version := h.Version
	if version == 0 {
		version = Version
	}
	dst = append(dst, magic[:]...)
	dst = binary.LittleEndian.AppendUint32(dst, version)
	dst = binary.LittleEndian.AppendUint32(dst, h.Flags)
	dst = binary.LittleEndian.AppendUint64(dst, h.ID)
	dst = binary.LittleEndian.AppendUint64(dst, h.First)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(h.Created))
	dst = binary.LittleEndian.AppendUint64(dst, h.Prev)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(h.bodyLen))
	dst = binary.LittleEndian.AppendUint32(dst, h.bodySum)
	return binary.LittleEndian.AppendUint32(dst, Checksum(dst[start:]))
}

// ParseHeader returns the header at the beginning of b, from the file path. It fails with
// ErrDamaged unless that is a whole header of the kind, and with an UnsupportedError for a
// newer version.
func ParseHeader(b []byte, kind Kind, path string) (Header, error) {
	magic := kind.Magic()
	if len(b) < HeaderSize || !bytes.Equal(b[:8], magic[:]) || Checksum(b[:60]) != binary.LittleEndian.Uint32(b[60:]) {
		return Header{}, ErrDamaged
	}
	h := Header{
		Kind:    kind,
		Version: binary.LittleEndian.Uint32(b[8:]),
		Flags:   binary.LittleEndian.Uint32(b[12:]),
		ID:      binary.LittleEndian.Uint64(b[16:]),
		First:   binary.LittleEndian.Uint64(b[24:]),
		Created: int64(binary.LittleEndian.Uint64(b[32:])),
		Prev:    binary.LittleEndian.Uint64(b[40:]),
		bodyLen: int64(binary.LittleEndian.Uint64(b[48:])),
		bodySum: binary.LittleEndian.Uint32(b[56:]),
	}
	switch {
	case h.Version != Version:
		return h, &UnsupportedError{File: path, What: fmt.Sprintf("format version %d", h.Version)}
	case h.ofBefore():
		return h, &UnsupportedError{File: path, What: "the layout of 0.1.0"}
	case h.First >= MaxNumber:
		return Header{}, ErrDamaged
	}
	return h, nil
}

// ofBefore reports whether the header is of a program from before v0.2.0, which had the time of creation
// where First is, the offset of another segment where Created is, and the same version.
func (h *Header) ofBefore() bool {
	const time, offset = 1e18, 1e17 // the year 2001, in nanoseconds; more records than a journal gets
	return h.Kind == JournalSegment && h.First >= time && h.Created < offset
}

// ReadHeader returns the header at the start of f. The error is as from ParseHeader,
// ErrTorn if f ends before, or the read's.
func ReadHeader(f io.ReaderAt, kind Kind, path string) (Header, error) {
	var b [HeaderSize]byte
	switch n, err := f.ReadAt(b[:], 0); {
	case n == len(b):
		return ParseHeader(b[:], kind, path)
	case err == io.EOF:
		return Header{}, ErrTorn
	default:
		return Header{}, err
	}
}

// AppendFile appends a small file: the header and its body.
func AppendFile(dst []byte, h Header, body []byte) []byte {
	h.bodyLen, h.bodySum = int64(len(body)), Checksum(body)
	return append(h.Append(dst), body...)
}

// ParseFile returns the header and the body of the small file at the beginning of b. The
// error is as from ParseHeader.
func ParseFile(b []byte, kind Kind, path string) (Header, []byte, error) {
	h, err := ParseHeader(b, kind, path)
	if err != nil {
		return h, nil, err
	}
	body := b[HeaderSize:]
	if h.bodyLen < 0 || h.bodyLen > int64(len(body)) || Checksum(body[:h.bodyLen]) != h.bodySum {
		return Header{}, nil, ErrDamaged
	}
	return h, body[:h.bodyLen], nil
}

// Frame is a frame's header.
type Frame struct {
	BodySum  uint32
	BodyLen  int // bytes
	First    uint64
	ID       uint64
	MinTime  int64
	MaxTime  int64
	Records  int
	KeysLen  int // bytes
	Unpacked int // bytes
	Codec    uint8
	Flags    uint8
	Keys     int
}

// Size returns the length of the whole frame in bytes.
func (f *Frame) Size() int64 { return FrameHeaderSize + int64(f.BodyLen) }

// End returns the number after the frame's last record.
func (f *Frame) End() uint64 { return f.First + uint64(f.Records) }

// Put fills in the length and the checksum of the body and writes the header to the first
// 64 bytes of frame, which the body follows.
func (f *Frame) Put(frame []byte) {
	body := frame[FrameHeaderSize:]
	f.BodyLen = len(body)
	head, _ := f.headLen(body) // the caller has appended it
	f.BodySum = Checksum(body[:head])
	f.putHeader(frame)
}

func (f *Frame) putHeader(dst []byte) {
	copy(dst, frameMagic)
	binary.LittleEndian.PutUint32(dst[8:], f.BodySum)
	binary.LittleEndian.PutUint32(dst[12:], uint32(f.BodyLen))
	binary.LittleEndian.PutUint64(dst[16:], f.First)
	binary.LittleEndian.PutUint64(dst[24:], f.ID)
	binary.LittleEndian.PutUint64(dst[32:], uint64(f.MinTime))
	binary.LittleEndian.PutUint64(dst[40:], uint64(f.MaxTime))
	binary.LittleEndian.PutUint32(dst[48:], uint32(f.Records))
	binary.LittleEndian.PutUint32(dst[52:], uint32(f.KeysLen))
	binary.LittleEndian.PutUint32(dst[56:], uint32(f.Unpacked))
	dst[60], dst[61] = f.Codec, f.Flags
	binary.LittleEndian.PutUint16(dst[62:], uint16(f.Keys))
	binary.LittleEndian.PutUint32(dst[4:], Checksum(dst[8:FrameHeaderSize]))
}

// ParseFrame returns ErrDamaged unless b begins with a valid frame header. The caller
// judges codec and flags.
func ParseFrame(b []byte) (Frame, error) {
	if len(b) < FrameHeaderSize || !bytes.Equal(b[:4], frameMagic) ||
		Checksum(b[8:FrameHeaderSize]) != binary.LittleEndian.Uint32(b[4:]) {
		return Frame{}, ErrDamaged
	}
	bodyLen, records := binary.LittleEndian.Uint32(b[12:]), binary.LittleEndian.Uint32(b[48:])
	keysLen, unpacked := binary.LittleEndian.Uint32(b[52:]), binary.LittleEndian.Uint32(b[56:])
	f := Frame{
		BodySum:  binary.LittleEndian.Uint32(b[8:]),
		BodyLen:  int(bodyLen),
		First:    binary.LittleEndian.Uint64(b[16:]),
		ID:       binary.LittleEndian.Uint64(b[24:]),
		MinTime:  int64(binary.LittleEndian.Uint64(b[32:])),
		MaxTime:  int64(binary.LittleEndian.Uint64(b[40:])),
		Records:  int(records),
		KeysLen:  int(keysLen),
		Unpacked: int(unpacked),
		Codec:    b[60],
		Flags:    b[61],
		Keys:     int(binary.LittleEndian.Uint16(b[62:])),
	}
	if bodyLen > MaxBody || keysLen > bodyLen || unpacked > MaxBody || records == 0 || records > unpacked ||
		f.First >= MaxNumber-uint64(records) {
		return Frame{}, ErrDamaged
	}
	return f, nil
}

// Unknown names the first field with a value that this version cannot read, or "".
func (f *Frame) Unknown() string {
	switch {
	case f.Codec > CodecColumns:
		return fmt.Sprintf("codec %d", f.Codec)
	case f.Flags&^FlagBlocks != 0:
		return fmt.Sprintf("flags %#02x", f.Flags)
	}
	return ""
}

// check returns ErrDamaged unless body, the whole body or at least its head, has the right
// checksum and, if the codec is known, the right number of lines. Blocks have checksums of
// their own.
func (f *Frame) check(body []byte) error {
	if head, ok := f.headLen(body); !ok || head > len(body) || Checksum(body[:head]) != f.BodySum {
		return ErrDamaged
	}
	if lines := body[f.KeysLen:]; f.Codec == CodecNone && f.Flags == 0 && (len(lines) != f.Unpacked || LineCount(lines) != f.Records) {
		return ErrDamaged
	}
	return nil
}

// LineCount returns the number of lines in b, or -1 if b does not end in '\n'.
func LineCount(b []byte) int {
	if len(b) == 0 || b[len(b)-1] != '\n' {
		return -1
	}
	return bytes.Count(b, []byte{'\n'})
}

// SkipLines returns the length of the first n lines of b.
func SkipLines(b []byte, n uint64) int {
	pos := 0
	for ; n > 0; n-- {
		pos += bytes.IndexByte(b[pos:], '\n') + 1
	}
	return pos
}

// Pieces returns the number of pieces, as by Piece, that b has.
func Pieces(b []byte, limit int) (n int) {
	for ; len(b) > 0; n++ {
		b = b[Piece(b, limit):]
	}
	return n
}

// Piece returns the length of the first lines of b that fit limit bytes, or of the first
// line if none does.
func Piece(b []byte, limit int) int {
	if len(b) <= limit {
		return len(b)
	}
	if n := bytes.LastIndexByte(b[:limit], '\n') + 1; n > 0 {
		return n
	}
	return bytes.IndexByte(b, '\n') + 1
}
