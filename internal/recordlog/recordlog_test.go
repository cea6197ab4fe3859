package recordlog_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/disktest"
	. "github.com/rollway/rollway/internal/recordlog"
	"github.com/rollway/rollway/internal/recordlog/recordlogtest"
	"github.com/rollway/rollway/internal/testkit"
)

var update = flag.Bool("update", false, "rewrite the golden file")

func TestTables(t *testing.T) {
	recordlogtest.CheckTables(t, "../../docs/FORMAT.md", "format.go", "footer.go")
}

const id = 0xdeadbeef01020304

// lines returns lines from to below to.
func lines(from, to uint64) (s string) {
	for n := from; n < to; n++ {
		s += fmt.Sprintf("line %d\n", n)
	}
	return s
}

func frame(first, end uint64) []byte {
	body := lines(first, end)
	b := append(make([]byte, FrameHeaderSize), body...)
	f := Frame{ID: id, First: first, Records: int(end - first), Unpacked: len(body), MinTime: int64(first), MaxTime: int64(end)}
	f.Put(b)
	return b
}

// segment is a segment of lines 5 to 12 in four frames.
func segment() []byte {
	h := Header{Kind: JournalSegment, Flags: 1, ID: id, First: 5, Created: 7, Prev: 2}
	b := h.Append(nil)
	for n := uint64(5); n < 13; n += 2 {
		b = append(b, frame(n, n+2)...)
	}
	return b
}

// sealed is segment with a footer.
func sealed() []byte {
	b := segment()
	foot := footer()
	foot.Sections = []Section{{Kind: FramesSection, Pos: HeaderSize, Len: int64(len(b) - HeaderSize), Sum: Checksum(b[HeaderSize:])}}
	return foot.Append(b)
}

func footer() Footer {
	return Footer{
		ID: id, First: 5, End: 13, Sealed: 99, Records: 8, LineBytes: 59, MinTime: 5, MaxTime: 13, Written: 98, Step: 60e9,
		Sections: []Section{{Kind: FramesSection, Sum: 1, Pos: HeaderSize, Len: 200}},
		Marks:    []Mark{{First: 5, Pos: HeaderSize, Records: 8, MinTime: 5, MaxTime: 13}},
		Counts:   []Count{{Step: 1, Level: -4, Records: 3}, {Step: 1, Level: NoLevel, Records: 5}},
		Tenants:  []Tenant{{Name: "a", Records: 3, Bytes: 90}, {Name: "b", Records: 5, Bytes: 100}},
	}
}

func TestGolden(t *testing.T) {
	const golden = "testdata/format.hex"
	got := hex.Dump(sealed())
	if *update {
		testkit.OK(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	want, err := os.ReadFile(golden)
	testkit.OK(t, err)
	if got != string(want) {
		t.Errorf("the format has changed; a new one needs a new version:\n%s", got)
	}
}

func TestFooter(t *testing.T) {
	b := segment()
	want := footer()
	file := want.Append(b)
	want.Size = int64(len(file) - len(b))
	got, err := ReadFooter(bytes.NewReader(file), "x", int64(len(file)))
	if err != nil || !reflect.DeepEqual(*got, want) {
		t.Fatalf("%+v, %v, want %+v", got, err, want)
	}
	many := footer() // more than is read at first
	for n := range 1000 {
		many.Marks = append(many.Marks, Mark{First: 5 + uint64(n)/200, Pos: HeaderSize + int64(n)/10})
	}
	many.Marks = many.Marks[1:]
	file = many.Append(b)
	if got, err = ReadFooter(bytes.NewReader(file), "x", int64(len(file))); err != nil || len(got.Marks) != 1000 {
		t.Fatalf("%+v, %v", got, err)
	}
	file = want.Append(b)
	for pos := len(b); pos < len(file); pos++ {
		flipped := bytes.Clone(file)
		flipped[pos] ^= 1
		if foot, err := ReadFooter(bytes.NewReader(flipped), "x", int64(len(file))); err == nil {
			t.Errorf("byte %d flipped: %+v", pos, foot)
		}
	}
	for n := range file {
		if foot, err := ReadFooter(bytes.NewReader(file[:n]), "x", int64(n)); err == nil {
			t.Errorf("cut to %d bytes: %+v", n, foot)
		}
	}
}

func flip(pos int) func([]byte) []byte {
	return func(b []byte) []byte { b[(len(b)+pos)%len(b)] ^= 1; return b }
}

// Every row damages a sealed segment in one way and says what Scan finds.
func TestScan(t *testing.T) {
	size := len(frame(5, 7)) // the first two frames are as long
	at := func(n int) int { return HeaderSize + n*size }
	for _, row := range []struct {
		name    string
		corrupt func([]byte) []byte
		records int64
		end     uint64
		found   string // findings, as those of a sealed segment
		footer  bool
	}{
		{"nothing", func(b []byte) []byte { return b }, 8, 13, "", true},
		{"the file header", flip(20), 8, 13, "damaged, 64 bytes at byte 0", true},
		{"a body", flip(at(1) + FrameHeaderSize), 6, 13, "offsets 7 to 8 are not there; damaged, 78 bytes at byte 142", true},
		{"a frame header", flip(at(1) + 9), 6, 13, "offsets 7 to 8 are not there; damaged, 78 bytes at byte 142", true},
		{"the last byte", flip(-1), 8, 13, "damaged, 262 bytes at byte 379", false},
		{"no footer", func([]byte) []byte { return segment() }, 8, 13, "", false},
		{"no footer, a torn frame", func([]byte) []byte { b := segment(); return b[:len(b)-1] }, 6, 11, "damaged, 79 bytes at byte 299", false},
		{"no footer, a torn header", func([]byte) []byte { b := segment(); return b[:at(1)+3] }, 2, 7, "damaged, 3 bytes at byte 142", false},
		{"zeros", func(b []byte) []byte { return make([]byte, len(b)) }, 0, 5, "damaged, 641 bytes at byte 0", false},
		{"another kind", func(b []byte) []byte { b[3] = 'S'; return recordlogtest.WithChecksums(b) }, 8, 13, "damaged, 64 bytes at byte 0", true},
		{"frames of another segment", func([]byte) []byte {
			b := segment()
			other := bytes.ReplaceAll(b[at(1):at(2)], []byte{4, 3, 2, 1}, []byte{4, 3, 2, 9})
			return append(append(b[:at(1):at(1)], recordlogtest.WithChecksums(other)...), b[at(2):]...)
		}, 6, 13, "offsets 7 to 8 are not there; damaged, 78 bytes at byte 142", false},
		{"a codec that is not known", func(b []byte) []byte { b[at(1)+60] = 7; return recordlogtest.WithChecksums(b) }, 8, 13, "written by another version, codec 7", true},
	} {
		b := row.corrupt(sealed())
		s, err := Scan(bytes.NewReader(b), "x", JournalSegment, int64(len(b)), 5, MaxNumber, nil)
		if err != nil {
			t.Fatalf("%s: %v", row.name, err)
		}
		var found []string
		for _, f := range s.Findings("x", false) {
			found = append(found, f.String())
		}
		all := strings.Join(found, "; ")
		for _, part := range strings.Split(row.found, "; ") {
			if !strings.Contains(all, part) || row.found == "" && all != "" {
				t.Errorf("%s: found %q, want %q", row.name, all, row.found)
			}
		}
		if s.Records != row.records || s.End != row.end || (s.Footer != nil) != row.footer || s.Zero != (row.name == "zeros") {
			t.Errorf("%s: %+v", row.name, s)
		}
	}
	newer := Header{Kind: JournalSegment, Version: 2, First: 5}
	var unsupported *UnsupportedError
	if _, err := Scan(bytes.NewReader(newer.Append(nil)), "x", JournalSegment, 64, 5, MaxNumber, nil); !errors.As(err, &unsupported) || !strings.Contains(err.Error(), "read x at byte 0: format version 2 is not known") {
		t.Errorf("a newer version: %v", err)
	}
}

// failing fails to read a range of a file.
type failing struct {
	io.ReaderAt
	from, to int64
}

func (f failing) ReadAt(p []byte, off int64) (int, error) {
	if off < f.to && off+int64(len(p)) > f.from {
		return 0, errors.New("bad sector")
	}
	return f.ReaderAt.ReadAt(p, off)
}

// What cannot be read is passed over and reported, and what follows is found.
func TestResyncOverUnreadable(t *testing.T) {
	h := Header{Kind: JournalSegment, ID: id}
	b := h.Append(nil)
	for n := uint64(0); n < 30_000; n += 100 {
		b = append(b, frame(n, n+100)...)
	}
	var w Walker
	w.Open(failing{bytes.NewReader(b), 100_000, 100_010}, "x", int64(len(b)))
	w.Pos++
	err := w.Resync(func(f *Frame) bool { return f.First > 20_000 })
	f, herr := w.Header()
	if err == nil || !strings.Contains(err.Error(), "bad sector") || herr != nil || f.First <= 20_000 || f.First > 20_100 {
		t.Errorf("%v, at %d: %+v, %v", err, w.Pos, f, herr)
	}
}

func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"00000000000000000012.seg":    "12 .seg true",
		"04611686018427387903.x.y":    "4611686018427387903 .x.y true",
		"04611686018427387904.seg":    "4611686018427387904 .seg false",
		"99999999999999999999.seg":    "0  false",
		"0000000000000000001x.seg":    "0  false",
		"00000000000000000012":        "0  false",
		"00000000000000000012seg.":    "0  false",
		"0000000000000000012.spool":   "0  false",
		"00000000000000000000.spool":  "0 .spool true",
		"00000000000000000000.a.bad":  "0 .a.bad true",
		"00000000000000000000.a.bad2": "0 .a.bad2 true",
	} {
		if n, ext, ok := ParseName(name); fmt.Sprint(n, " ", ext, " ", ok) != want {
			t.Errorf("%s: %d %s %v, want %s", name, n, ext, ok, want)
		}
	}
	for name, want := range map[string]bool{"a.bad": true, "a.bad-2": true, "a.badge": false, "a": false} {
		if IsSetAside(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

func TestSmallFiles(t *testing.T) {
	mem := disktest.NewMem()
	testkit.OK(t, mem.MkdirAll("/d", 0o750))
	write := func(fsys disk.FS, text string) error {
		return WriteFile(fsys, "/d/x", AppendFile(nil, Header{Kind: Manifest, First: 3}, []byte(text)))
	}
	read := func(fsys disk.FS) (string, error) {
		b, err := ReadFile(fsys, "/d/x", 1000)
		if err != nil {
			return "", err
		}
		h, body, err := ParseFile(b, Manifest, "/d/x")
		if err == nil && h.First != 3 {
			t.Errorf("%+v", h)
		}
		return string(body), err
	}
	if _, err := read(mem); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	testkit.OK(t, write(mem, "one"))
	for _, kind := range []disktest.Kind{disktest.Write, disktest.Sync, disktest.Rename, disktest.Open} {
		bad := &disktest.Faulty{FS: mem, Hook: func(op disktest.Op) disktest.Fault {
			if op.Kind == kind {
				return disktest.Fault{Err: io.ErrShortWrite}
			}
			return disktest.Fault{}
		}}
		if err := write(bad, "two"); err == nil {
			t.Errorf("%v failed, and nobody was told", kind)
		}
		if s, err := read(mem); s != "one" || err != nil {
			t.Errorf("after a failed %v: %q, %v", kind, s, err)
		}
		if entries, _ := mem.List("/d"); len(entries) != 1 {
			t.Errorf("after a failed %v: %v", kind, entries)
		}
	}
	for i, want := range []string{"x.bad", "x.bad-2", "x.bad-3"} {
		testkit.OK(t, write(mem, "one"))
		if got, err := MoveAside(mem, "/d", "x"); got != want || err != nil || !IsSetAside(got) {
			t.Errorf("%d: %s, %v", i, got, err)
		}
	}
}

// FuzzParse: what parses encodes to the same bytes.
func FuzzParse(f *testing.F) {
	f.Add(segment()[:HeaderSize])
	f.Add(frame(5, 7))
	f.Add(AppendFile(nil, Header{Kind: Manifest, First: 3}, []byte("body")))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		b = recordlogtest.WithChecksums(b)
		kind := KindOf(b)
		if h, err := ParseHeader(b, kind, ""); err == nil && !bytes.Equal(h.Append(nil), b[:HeaderSize]) {
			t.Fatalf("%+v", h)
		}
		if h, body, err := ParseFile(b, kind, ""); err == nil && !bytes.Equal(AppendFile(nil, h, body), b[:HeaderSize+len(body)]) {
			t.Fatalf("%+v", h)
		}
		h, err := ParseFrame(b)
		if err != nil || len(b) < FrameHeaderSize+h.BodyLen {
			return
		}
		again := bytes.Clone(b[:FrameHeaderSize+h.BodyLen])
		clear(again[:FrameHeaderSize])
		if h.Put(again); !bytes.Equal(again, b[:len(again)]) {
			t.Fatalf("%+v", h)
		}
	})
}

// FuzzFooter: whatever the bytes are, a footer that is read makes sense and
// encodes to the same.
func FuzzFooter(f *testing.F) {
	whole := sealed()
	f.Add(whole[len(segment()):len(whole)-HeaderSize], uint16(100))
	f.Add([]byte{}, uint16(0))
	f.Fuzz(func(t *testing.T, body []byte, before uint16) {
		h := AppendFile(nil, Header{Kind: 'F', ID: id, First: 5, Created: 99, Prev: 13}, body)
		file := append(append(make([]byte, HeaderSize+int(before)), body...), h[:HeaderSize]...)
		foot, err := ReadFooter(bytes.NewReader(file), "", int64(len(file)))
		if err != nil {
			return
		}
		if again := foot.Append(nil); !bytes.Equal(again, file[len(file)-len(again):]) || foot.FramesEnd() > int64(len(file)) {
			t.Fatalf("%+v", foot)
		}
	})
}

// FuzzScan: any bytes come to an end, and what is found is within them.
func FuzzScan(f *testing.F) {
	whole := sealed()
	for _, seed := range [][]byte{whole, segment(), whole[:64], whole[:100], whole[64:], nil, make([]byte, 500)} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, b []byte, sums bool) {
		if sums {
			b = recordlogtest.WithChecksums(b)
		}
		end := uint64(5)
		s, err := Scan(bytes.NewReader(b), "", JournalSegment, int64(len(b)), 5, 100, func(pos int64, h *Frame, body []byte) error {
			if h.First < end || h.End() > 100 || len(body) != h.BodyLen || pos+h.Size() > int64(len(b)) {
				t.Fatalf("frame %+v at %d after %d", h, pos, end)
			}
			end = h.End()
			return nil
		})
		if err == nil && (s.End != end || s.GoodEnd() > int64(len(b))) {
			t.Fatalf("%+v", s)
		}
	})
}

// A segment of 0.1.0 has the time of its creation where a header has the first record, the segment before
// where that has the time, and the same version.
func TestSegmentOfBefore(t *testing.T) {
	b := (&Header{Kind: JournalSegment, Version: Version, First: 1763913744000000000, Created: 0}).Append(nil)
	_, err := ParseHeader(b, JournalSegment, "a.seg")
	if newer := (*UnsupportedError)(nil); !errors.As(err, &newer) || !strings.Contains(err.Error(), "the layout of 0.1.0 is not known") {
		t.Errorf("ParseHeader: %v", err)
	}
}
