package recordlog_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rollway/rollway/internal/disktest"
	. "github.com/rollway/rollway/internal/recordlog"

	"github.com/rollway/rollway/internal/testkit"
)

// However long a small file is, Inspect reads what its header tells, in pieces.
func TestInspectIsBounded(t *testing.T) {
	for name, body := range map[string]int{"longer than its header says": 10 * ManifestEntrySize, "of many segments": 1e5 * ManifestEntrySize} {
		mem := disktest.NewMem()
		content := AppendFile(nil, Header{Kind: Manifest, First: 3}, make([]byte, body))
		testkit.OK(t, mem.MkdirAll("/d", 0o750))
		testkit.OK(t, mem.WriteFile("/d/m", append(content, make([]byte, 10<<20)...)))
		most := 0
		watched := &disktest.Faulty{FS: mem, Hook: func(op disktest.Op) disktest.Fault {
			most = max(most, op.Len)
			return disktest.Fault{}
		}}
		r, err := Inspect(watched, "/d/m")
		if err != nil || r.Records != int64(body/ManifestEntrySize) || len(r.Findings) > 0 || most > 1<<20 {
			t.Errorf("%s: %+v, %v; %d bytes are read at once", name, r, err, most)
		}
	}
}

// Inspect says of each kind of file what it is and what is wrong with it.
func TestInspect(t *testing.T) {
	file := func(h Header, body string) []byte { return AppendFile(nil, h, []byte(body)) }
	slot := file(Header{Kind: SpoolCursor, ID: 1, First: 4}, "ends")
	other := bytes.Replace(sealed(), []byte("line 8"), []byte("line 9"), 1)
	for _, row := range []struct {
		name    string
		content []byte
		kind    Kind
		records int64
		first   uint64
		found   string
	}{
		{"a.seg", sealed(), JournalSegment, 8, 5, ""},
		{"a.seg", segment(), JournalSegment, 8, 5, ""},
		{"a.seg", flip(HeaderSize + FrameHeaderSize)(sealed()), JournalSegment, 6, 5, "damaged, 78 bytes at byte 64"},
		{"a.seg", other, JournalSegment, 6, 5, "damaged"},
		{"a.open", segment()[:300], JournalSegment, 6, 5, "torn tail cut, 1 bytes at byte 299"},
		{"m", file(Header{Kind: Manifest, First: 3}, strings.Repeat("x", 2*ManifestEntrySize)), Manifest, 2, 3, ""},
		{"m", flip(-1)(file(Header{Kind: Manifest}, "xx")), Manifest, 0, 0, "damaged"},
		{"c", file(Header{Kind: JournalCursor, First: 7}, "id"), JournalCursor, 0, 7, ""},
		{"c", file(Header{Kind: JournalCursor, First: 7, Version: 3}, "id"), JournalCursor, 0, 0, "written by another version, format version 3"},
		{"c", append(make([]byte, SlotSize), file(Header{Kind: JournalCursor, First: 7}, "id")...), JournalCursor, 0, 7, ""},
		{"q", slot, SpoolCursor, 0, 4, ""},
		{"q", append(make([]byte, SlotSize), slot...), SpoolCursor, 0, 4, ""},
		{"q", append(append(flip(30)(bytes.Clone(slot)), make([]byte, SlotSize-len(slot))...), slot...), SpoolCursor, 0, 4, ""},
		{"q", flip(30)(bytes.Clone(slot)), SpoolCursor, 0, 0, "damaged"},
	} {
		mem := disktest.NewMem()
		testkit.OK(t, mem.MkdirAll("/d", 0o750))
		testkit.OK(t, mem.WriteFile("/d/"+row.name, row.content))
		r, err := Inspect(mem, "/d/"+row.name)
		if err != nil {
			t.Errorf("%s: %v", row.name, err)
		}
		all := ""
		for _, f := range r.Findings {
			all += f.String()
		}
		if r.Kind != row.kind || r.Records != row.records || r.First != row.first || !strings.Contains(all, row.found) || row.found == "" && all != "" {
			t.Errorf("%s: %+v, found %q, want %+v", row.name, r, all, row.found)
		}
	}
	// A section that is sound in its frames, but not the one that was sealed.
	b := sealed()
	foot, err := ReadFooter(bytes.NewReader(b), "", int64(len(b)))
	testkit.OK(t, err)
	foot.Sections[0].Sum++
	if list, err := foot.Check(bytes.NewReader(b), "a"); err != nil || len(list) != 1 || !strings.Contains(list[0].Detail, "section 1 has another checksum") {
		t.Errorf("%v", list)
	}
}
