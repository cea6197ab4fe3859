package recordlog

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/rollway/rollway/internal/disk"
)

// Report is what Inspect found in a file.
type Report struct {
	Kind     Kind
	First    uint64 // number of the first record, or a cursor's position
	End      uint64 // number after the last record
	Records  int64
	Frames   int
	Bytes    int64
	Sealed   bool      // it has a footer
	Findings []Finding // what is wrong
}

// Identify returns the kind of the file at path, or 0.
func Identify(path string) (Kind, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close() // only read from
	return identify(f)
}

func identify(f io.ReaderAt) (Kind, error) {
	for _, pos := range []int64{0, SlotSize} { // a cursor may have the second slot alone
		var b [8]byte
		if n, err := f.ReadAt(b[:], pos); n < len(b) {
			if err == io.EOF {
				return 0, nil
			}
			return 0, err
		}
		if k := KindOf(b[:]); k != 0 && (pos == 0 || k.slots()) {
			return k, nil
		}
	}
	return 0, nil
}

// slots reports whether a file of kind k has two slots.
func (k Kind) slots() bool { return k == SpoolCursor || k == JournalCursor }

// Inspect reads the segment or small file at path to its end. It changes nothing and takes
// no lock.
func Inspect(fsys disk.FS, path string) (r Report, err error) {
	f, err := fsys.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return r, err
	}
	defer f.Close() // only read from
	size, err := f.Size()
	if err != nil {
		return r, err
	}
	return InspectOpen(f, size, path)
}

// InspectOpen is Inspect of a file of size bytes that is open, or part of another one.
func InspectOpen(f io.ReaderAt, size int64, path string) (r Report, err error) {
	r.Bytes = size
	if r.Kind, err = identify(f); err != nil {
		return r, err
	}
	switch r.Kind {
	case JournalSegment, SpoolSegment:
		err = r.segment(f, path)
	case JournalCursor, Manifest, History, SpoolCursor:
		err = r.small(f, path)
	default:
		return r, fmt.Errorf("%s is no segment and no cursor or manifest", path)
	}
	if newer := (*UnsupportedError)(nil); errors.As(err, &newer) {
		r.Findings, err = []Finding{{Kind: Newer, File: filepath.Base(path), Detail: newer.What}}, nil
	}
	return r, err
}

func (r *Report) segment(f io.ReaderAt, path string) error {
	h, err := ReadHeader(f, r.Kind, path)
	if err != nil && !IsDamage(err) {
		return err
	}
	r.First = h.First
	s, err := Scan(f, path, r.Kind, r.Bytes, h.First, MaxNumber, nil)
	if err != nil {
		return err
	}
	r.End, r.Records, r.Frames, r.Sealed = s.End, s.Records, s.Frames, s.Footer != nil
	name := filepath.Base(path)
	r.Findings = s.Findings(name, filepath.Ext(path) != ".seg")
	if len(r.Findings) == 0 && s.Footer != nil && s.Err == nil {
		r.Findings, s.Err = s.Footer.Check(f, name)
	}
	return s.Err
}

// small checks a file of one header and one body, or of two of them in slots.
func (r *Report) small(f io.ReaderAt, path string) error {
	slots := []int64{0}
	if r.Kind.slots() {
		slots = []int64{0, SlotSize}
	}
	sound := false
	for _, pos := range slots {
		h, err := ReadHeader(io.NewSectionReader(f, pos, HeaderSize), r.Kind, path)
		if err == nil {
			var sum uint32
			sum, err = checksumAt(f, pos+HeaderSize, max(h.bodyLen, 0))
			if err == io.EOF || err == nil && (sum != h.bodySum || h.bodyLen < 0) {
				err = ErrDamaged
			}
		}
		switch {
		case err == nil:
			sound, r.First = true, max(r.First, h.First)
			if r.Kind == Manifest {
				r.Records = h.bodyLen / ManifestEntrySize
			}
		case !IsDamage(err):
			return err
		}
	}
	if !sound {
		r.Findings = []Finding{{Kind: Damaged, File: filepath.Base(path), Bytes: r.Bytes, Detail: ErrDamaged.Error()}}
	}
	return nil
}

// Check compares the sections of a segment with their checksums. name is the file's name in
// its folder. The error is of reading.
func (f *Footer) Check(file io.ReaderAt, name string) (list []Finding, err error) {
	for _, s := range f.Sections {
		switch sum, err := checksumAt(file, s.Pos, s.Len); {
		case err == io.EOF:
			list = append(list, Finding{Kind: Damaged, File: name, Pos: s.Pos, Bytes: s.Len, Detail: "the file ends within it"})
		case err != nil:
			return list, err
		case sum != s.Sum:
			list = append(list, Finding{Kind: Damaged, File: name, Pos: s.Pos, Bytes: s.Len, Detail: fmt.Sprintf("section %d has another checksum than the footer says", s.Kind)})
		}
	}
	return list, nil
}

// checksumAt returns the checksum of n bytes of a file. The error is io.EOF if it ends before.
func checksumAt(file io.ReaderAt, pos, n int64) (sum uint32, err error) {
	buf := make([]byte, min(n, 1<<20))
	for n > 0 {
		b := buf[:min(int64(len(buf)), n)]
		if got, err := file.ReadAt(b, pos); got < len(b) {
			return 0, err
		}
		sum = Extend(sum, b)
		pos, n = pos+int64(len(b)), n-int64(len(b))
	}
	return sum, nil
}
