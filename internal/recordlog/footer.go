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
//	      52     4  number of marks
//	      56     4  number of counts
//	      60     4  number of tenants
//	      64        sections, then marks, counts and tenants
//	     -64    64  file header with the kind 46, the segment's id and first record, the
//	                time of sealing, the number after the last record, and the length
//	                and checksum of what is before it
//
//	Section, 24 bytes
//	       0     4  kind: 1 = frames of lines, 2 = idempotency keys, 4 = filters
//	       4     4  checksum of the section
//	       8     8  position in the file
//	      16     8  length in bytes
//
//	Mark, 40 bytes: one or more frames
//	       0     8  number of the first record
//	       8     8  position of the first frame in the file
//	      16     4  number of records, deleted ones included
//	      20     4  0
//	      24     8  least time of a record
//	      32     8  greatest time of a record
//
//	Count, 16 bytes, in the order of steps and levels
//	       0     8  step: time of the lines divided by the length of a step, rounded down
//	       8     4  level: -8 = TRACE to 12 = FATAL; 80000000h = none that is known
//	      12     4  number of records
//
//	Tenant, of a segment with blocks
//	       0     8  number of records
//	       8     8  length of its blocks as they are stored
//	      16     2  length n
//	      18     n  name
const (
	footerHead  = 64 // of footerNumbers
	sectionSize = 24
	markSize    = 40
	tenantSize  = 18 // without the name
	countSize   = 16

	maxFooter = 1 << 30
)

// Kinds of sections.
const (
	FramesSection  = 1
	KeysSection    = 2
	FiltersSection = 4
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
	Marks     []Mark
	Counts    []Count
	Tenants   []Tenant

	Size int64 // of the footer itself; filled by ReadFooter
}

// Section is one part of a sealed segment.
type Section struct {
	Kind uint32
	Sum  uint32
	Pos  int64
	Len  int64
}

// Mark is one or more frames.
type Mark struct {
	First   uint64
	Pos     int64
	Records uint32
	_       uint32
	MinTime int64
	MaxTime int64
}

// Count is how many records of a level are in one step of time.
type Count struct {
	Step    int64
	Level   int32
	Records uint32
}

// Tenant is what a segment has of a tenant.
type Tenant struct {
	Name    string
	Records uint64
	Bytes   int64 // of its blocks, as they are stored
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
func FooterSize(sections, marks, counts int) int64 {
	return footerHead + int64(sections)*sectionSize + int64(marks)*markSize + int64(counts)*countSize + HeaderSize
}

// footerNumbers is the fixed part of a footer.
type footerNumbers struct {
	Records, LineBytes               uint64
	MinTime, MaxTime, Written, Step  int64
	Sections, Marks, Counts, Tenants uint32
}

// Append appends the footer to dst.
func (f *Footer) Append(dst []byte) []byte {
	numbers := footerNumbers{
		f.Records, f.LineBytes, f.MinTime, f.MaxTime, f.Written, f.Step,
		uint32(len(f.Sections)), uint32(len(f.Marks)), uint32(len(f.Counts)), uint32(len(f.Tenants)),
	}
	var b []byte
	for _, part := range []any{numbers, f.Sections, f.Marks, f.Counts} {
		b, _ = binary.Append(b, binary.LittleEndian, part) // all have a fixed size
	}
	for _, t := range f.Tenants {
		b = binary.LittleEndian.AppendUint64(b, t.Records)
		b = binary.LittleEndian.AppendUint64(b, uint64(t.Bytes))
		b = append(binary.LittleEndian.AppendUint16(b, uint16(len(t.Name))), t.Name...)
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
	var n footerNumbers
	read := func(part any) {
		size, _ := binary.Decode(b, binary.LittleEndian, part) // b is long enough
		b = b[size:]
	}
	read(&n)
	f.Records, f.LineBytes, f.MinTime, f.MaxTime, f.Written, f.Step = n.Records, n.LineBytes, n.MinTime, n.MaxTime, n.Written, n.Step
	size := int64(n.Sections)*sectionSize + int64(n.Marks)*markSize + int64(n.Counts)*countSize
	if size > int64(len(b)) || f.Step <= 0 || f.End < f.First || f.End > MaxNumber {
		return false
	}
	f.Sections, f.Marks, f.Counts = make([]Section, n.Sections), make([]Mark, n.Marks), make([]Count, n.Counts)
	read(f.Sections)
	// They are many, and package binary takes several times as long.
	le := binary.LittleEndian
	for i := range f.Marks {
		m := b[i*markSize:]
		f.Marks[i] = Mark{First: le.Uint64(m), Pos: int64(le.Uint64(m[8:])), Records: le.Uint32(m[16:]), MinTime: int64(le.Uint64(m[24:])), MaxTime: int64(le.Uint64(m[32:]))}
	}
	b = b[len(f.Marks)*markSize:]
	for i := range f.Counts {
		c := b[i*countSize:]
		f.Counts[i] = Count{Step: int64(le.Uint64(c)), Level: int32(le.Uint32(c[8:])), Records: le.Uint32(c[12:])}
	}
	b = b[len(f.Counts)*countSize:]
	for _, s := range f.Sections {
		if s.Pos < HeaderSize || s.Len < 0 || s.Pos > end || s.Len > end-s.Pos {
			return false
		}
	}
	last := Mark{First: f.First, Pos: HeaderSize}
	for _, k := range f.Marks {
		if k.First < last.First || k.First >= f.End || k.Pos < last.Pos || k.Pos >= f.FramesEnd() {
			return false
		}
		last = k
	}
	for range n.Tenants {
		if len(b) < tenantSize || int(binary.LittleEndian.Uint16(b[16:])) > len(b)-tenantSize {
			return false
		}
		t := Tenant{Records: binary.LittleEndian.Uint64(b), Bytes: int64(binary.LittleEndian.Uint64(b[8:]))}
		end := tenantSize + int(binary.LittleEndian.Uint16(b[16:]))
		t.Name, b = string(b[tenantSize:end]), b[end:]
		f.Tenants = append(f.Tenants, t)
	}
	return len(b) == 0 && f.FramesEnd() >= HeaderSize
}
