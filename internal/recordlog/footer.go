package recordlog

import (
	"encoding/binary"
	"io"
)

// A sealed segment ends in a footer: a body, and after it, as the last 64 bytes of
// the file, a file header of its own. docs/FORMAT.md has the same tables.
//
//	Footer of a sealed segment, at the end of the file
//	  offset  size  field
//	       0     8  number of records
//	       8     8  bytes of their lines when unpacked
//	      16     8  least time of a record
//	      24     8  greatest time of a record
//	      32     8  time of the last append
//	      40     8  length of a step of the counts in nanoseconds
//	      48     4  number of sections
//	      52     4  number of blocks
//	      56     4  number of counts
//	      60     4  number of tenants
//	      64        sections, then blocks, counts and tenants
//	     -64    64  file header with the kind 46, the segment's id and first record, the
//	                time of sealing, the number after the last record, and the length
//	                and checksum of what is before it
//
//	Section, 24 bytes
//	       0     4  kind: 1 = frames of lines, 2 = idempotency keys; 3 = columns and
//	                4 = filters are reserved
//	       4     4  checksum of the section
//	       8     8  position in the file
//	      16     8  length in bytes
//
//	Block, 40 bytes: one or more frames
//	       0     8  number of the first record
//	       8     8  position of the first frame in the file
//	      16     4  number of records
//	      20     4  tenant of all its lines: n = the n-th of the list; 0 = mixed
//	      24     8  least time of a record
//	      32     8  greatest time of a record
//
//	Count, 16 bytes, in the order of steps and levels
//	       0     8  step: time of the lines divided by the length of a step, rounded down
//	       8     4  level: -8 = TRACE to 12 = FATAL; 80000000h = none that is known
//	      12     4  number of records
//
//	Tenant
//	       0     2  length n
//	       2     n  name
const (
	footerHead  = 64
	sectionSize = 24
	blockSize   = 40
	countSize   = 16

	maxFooter = 1 << 30
)

// Kinds of sections.
const (
	FramesSection = 1
	KeysSection   = 2
)

// NoLevel is the level of lines without a known one.
const NoLevel = -1 << 31

// Footer describes a sealed segment.
type Footer struct {
	ID        uint64 // of the segment
	First     uint64
	End       uint64 // number after the last record
	Sealed    int64  // time
	Records   uint64
	LineBytes uint64
	MinTime   int64
	MaxTime   int64
	Written   int64 // time of the last append
	Step      int64 // of Counts
	Sections  []Section
	Blocks    []Block
	Counts    []Count
	Tenants   []string

	Size int64 // of the footer itself; filled by ReadFooter
}

// Section is one part of a sealed segment.
type Section struct {
	Kind uint32
	Sum  uint32
	Pos  int64
	Len  int64
}

// Block is one or more frames.
type Block struct {
	First   uint64
	Pos     int64
	Records uint32
	Tenant  uint32
	MinTime int64
	MaxTime int64
}

// Count is how many records of a level are in one step of time.
type Count struct {
	Step    int64
	Level   int32
	Records uint32
}

// Section returns the section of that kind, or one of length 0.
func (f *Footer) Section(kind uint32) Section {
	for _, s := range f.Sections {
		if s.Kind == kind {
			return s
		}
	}
	return Section{}
}

func (f *Footer) FramesEnd() int64 {
	s := f.Section(FramesSection)
	return s.Pos + s.Len
}

// FooterSize returns the length of a footer with no tenants.
func FooterSize(sections, blocks, counts int) int64 {
	return footerHead + int64(sections)*sectionSize + int64(blocks)*blockSize + int64(counts)*countSize + HeaderSize
}

// Append appends the footer to dst.
func (f *Footer) Append(dst []byte) []byte {
	le := binary.LittleEndian
	var b []byte
	for _, v := range []uint64{f.Records, f.LineBytes, uint64(f.MinTime), uint64(f.MaxTime), uint64(f.Written), uint64(f.Step)} {
		b = le.AppendUint64(b, v)
	}
	for _, n := range []int{len(f.Sections), len(f.Blocks), len(f.Counts), len(f.Tenants)} {
		b = le.AppendUint32(b, uint32(n))
	}
	for _, s := range f.Sections {
		b = le.AppendUint32(le.AppendUint32(b, s.Kind), s.Sum)
		b = le.AppendUint64(le.AppendUint64(b, uint64(s.Pos)), uint64(s.Len))
	}
	for _, k := range f.Blocks {
		b = le.AppendUint64(le.AppendUint64(b, k.First), uint64(k.Pos))
		b = le.AppendUint32(le.AppendUint32(b, k.Records), k.Tenant)
		b = le.AppendUint64(le.AppendUint64(b, uint64(k.MinTime)), uint64(k.MaxTime))
	}
	for _, c := range f.Counts {
		b = le.AppendUint64(b, uint64(c.Step))
		b = le.AppendUint32(le.AppendUint32(b, uint32(c.Level)), c.Records)
	}
	for _, t := range f.Tenants {
		b = append(le.AppendUint16(b, uint16(len(t))), t...)
	}
	h := Header{
		Kind: footerKind, ID: f.ID, First: f.First, Created: f.Sealed, Prev: f.End,
		bodyLen: int64(len(b)), bodySum: Checksum(b),
	}
	return h.Append(append(dst, b...))
}

// ReadFooter reads the footer at the end of a segment of size bytes. It fails with
// ErrDamaged if there is no sound one.
func ReadFooter(f io.ReaderAt, path string, size int64) (*Footer, error) {
	if size < 2*HeaderSize+footerHead {
		return nil, ErrDamaged
	}
	tail := make([]byte, min(size-HeaderSize, 4<<10))
	if n, err := f.ReadAt(tail, size-int64(len(tail))); n < len(tail) {
		return nil, readError(err)
	}
	h, err := ParseHeader(tail[len(tail)-HeaderSize:], footerKind, path)
	if err != nil {
		return nil, err
	}
	total := h.bodyLen + HeaderSize
	if h.bodyLen < footerHead || h.bodyLen > maxFooter || total > size-HeaderSize {
		return nil, ErrDamaged
	}
	if total > int64(len(tail)) {
		tail = make([]byte, total)
		if n, err := f.ReadAt(tail, size-total); n < len(tail) {
			return nil, readError(err)
		}
	}
	body := tail[int64(len(tail))-total:][:h.bodyLen]
	if Checksum(body) != h.bodySum {
		return nil, ErrDamaged
	}
	foot := &Footer{ID: h.ID, First: h.First, End: h.Prev, Sealed: h.Created, Size: total}
	if !foot.parse(body, size-total) {
		return nil, ErrDamaged
	}
	return foot, nil
}

func readError(err error) error {
	if err == io.EOF {
		return ErrDamaged
	}
	return err
}

// parse fills in f from the body of a footer that begins at byte end of the file, and
// reports whether it is valid.
func (f *Footer) parse(b []byte, end int64) bool {
	le := binary.LittleEndian
	word := func() uint64 { v := le.Uint64(b); b = b[8:]; return v }
	half := func() uint32 { v := le.Uint32(b); b = b[4:]; return v }
	f.Records, f.LineBytes = word(), word()
	f.MinTime, f.MaxTime, f.Written, f.Step = int64(word()), int64(word()), int64(word()), int64(word())
	sections, blocks, counts, tenants := int64(half()), int64(half()), int64(half()), half()
	if sections*sectionSize+blocks*blockSize+counts*countSize > int64(len(b)) || f.Step <= 0 || f.End < f.First || f.End > MaxNumber {
		return false
	}
	for range sections {
		s := Section{Kind: half(), Sum: half(), Pos: int64(word()), Len: int64(word())}
		if s.Pos < HeaderSize || s.Len < 0 || s.Pos > end || s.Len > end-s.Pos {
			return false
		}
		f.Sections = append(f.Sections, s)
	}
	last := Block{First: f.First, Pos: HeaderSize}
	for range blocks {
		k := Block{First: word(), Pos: int64(word()), Records: half(), Tenant: half(), MinTime: int64(word()), MaxTime: int64(word())}
		if k.First < last.First || k.First >= f.End || k.Pos < last.Pos || k.Pos >= f.FramesEnd() || k.Tenant > tenants {
			return false
		}
		f.Blocks, last = append(f.Blocks, k), k
	}
	for range counts {
		f.Counts = append(f.Counts, Count{Step: int64(word()), Level: int32(half()), Records: half()})
	}
	for range tenants {
		if len(b) < 2 || int(le.Uint16(b)) > len(b)-2 {
			return false
		}
		n := int(le.Uint16(b))
		f.Tenants, b = append(f.Tenants, string(b[2:2+n])), b[2+n:]
	}
	return len(b) == 0 && f.FramesEnd() >= HeaderSize
}
