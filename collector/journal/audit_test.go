package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/disktest"
	"github.com/rollway/rollway/internal/recordlog"
	"github.com/rollway/rollway/internal/testkit"
)

// Every row damages a journal of records 0 to 21 in three segments, as
// TestRecoveryTable has it, in one way, and says how many records Audit finds
// then at offsets 4 to 21, and how many places it reports.
func TestAudit(t *testing.T) {
	for _, row := range []struct {
		name   string
		damage func(mem *disktest.Mem)
		count  uint64
		damaged,
		segments int
	}{
		{"nothing", func(*disktest.Mem) {}, 18, 0, 3},
		{"a line", func(mem *disktest.Mem) { edit(t, mem, seg1, flipAt(segmentHeaderSize+frameHeaderSize+5)) }, 16, 2, 3},
		{"a frame's header", func(mem *disktest.Mem) { edit(t, mem, seg1, flipAt(segmentHeaderSize+5)) }, 16, 2, 3},
		{"the last frame of a segment", func(mem *disktest.Mem) { edit(t, mem, seg1, flipAt(lastBody)) }, 16, 2, 3},
		{"before the records", func(mem *disktest.Mem) { edit(t, mem, seg0, flipAt(segmentHeaderSize+5)) }, 18, 2, 3},
		{"a segment is gone", func(mem *disktest.Mem) { mem.Remove(seg1) }, 10, 1, 2},
		{"the tail is torn", func(mem *disktest.Mem) { edit(t, mem, last, func(b []byte) []byte { return b[:len(b)-1] }) }, 16, 1, 3},
		{"the first segment is gone", func(mem *disktest.Mem) { mem.Remove(seg0) }, 14, 1, 2},
	} {
		mem := memJournal(t, 2, 4, 3)
		row.damage(mem)
		a, err := audit(mem, "/j", AuditOptions{})
		testkit.OK(t, err)
		if n := a.Count(4, 22); n != row.count || len(a.Damage(0)) != row.damaged || len(a.List) != row.segments || a.ID == "" {
			t.Errorf("%s: %d records, %+v", row.name, n, a)
		}
		sum := int64(0)
		for _, s := range a.List {
			sum += s.Records
		}
		if sum != a.Records || uint64(sum) != a.Count(0, 1000) {
			t.Errorf("%s: %d records in segments, %d in all, %d by offsets", row.name, sum, a.Records, a.Count(0, 1000))
		}
	}
	mem := memJournal(t, 2, 4, 3)
	edit(t, mem, seg0, flipAt(lastBody))
	if a, err := audit(mem, "/j", AuditOptions{From: 10}); err != nil || len(a.List) != 2 || len(a.Damage(10)) != 0 || a.Count(0, 22) != 14 {
		t.Errorf("from offset 10: %+v, %v", a, err)
	}
}

// Keys of batches in pieces, in packed and in open segments are counted; one
// that was stored again while it had to be known is told.
func TestAuditKeys(t *testing.T) {
	mem := disktest.NewMem()
	o := keyOptions(mem)
	o.Pack = true
	j := mustOpen(t, "/j", o)
	for i := range 40 {
		if _, err := appendKeyed(j, i); err != nil {
			t.Fatal(err)
		}
	}
	c, err := j.OpenCursor("kafka", true)
	testkit.OK(t, err)
	testkit.OK(t, c.Save(9))
	waitPacked(t, j)
	stats := j.Stats()
	testkit.OK(t, j.Close())
	a, err := audit(mem, "/j", AuditOptions{})
	testkit.OK(t, err)
	if a.Keys != 40 || a.Twice != 0 || a.Count(0, a.Next) != stats.Next || a.Next != stats.Next || len(a.Damage(0)) > 0 || stats.PackedSegments == 0 {
		t.Errorf("%+v", a)
	}
	if fmt.Sprint(a.Cursors) != "[{kafka 9 }]" {
		t.Errorf("cursors: %v", a.Cursors)
	}
	edit(t, mem, "/j/cursors/kafka", func(b []byte) []byte {
		return flipAt(0)(flipAt(recordlog.SlotSize)(b))
	})

	// A process that remembers nothing.
	o.MaxKeys, o.KeyAge = 1, 1
	j = mustOpen(t, "/j", o)
	for _, i := range []int{3, 4, 39} {
		if _, err := appendKeyed(j, i); err != nil {
			t.Fatal(err)
		}
	}
	testkit.OK(t, j.Close())
	for from, want := range map[uint64]int{0: 3, stats.Next + 1: 2, stats.Next + 1000: 0} {
		if a, err = audit(mem, "/j", AuditOptions{KeysFrom: from}); err != nil || a.Twice != want || a.Keys != 43 {
			t.Errorf("from %d: %d keys, %d twice, want %d, %v", from, a.Keys, a.Twice, want, err)
		}
	}
	if len(a.Cursors) != 1 || !strings.Contains(a.Cursors[0].Error, "damaged") {
		t.Errorf("cursors: %v", a.Cursors)
	}
	if a, err = audit(mem, "/j", AuditOptions{KeyAge: 1}); err != nil || a.Twice != 0 {
		t.Errorf("keys that were forgotten: %d twice, %v", a.Twice, err)
	}
}

// Beside a process that appends under keys and deletes what is old, nothing is
// wrong.
func TestAuditWhileRunning(t *testing.T) {
	dir := t.TempDir()
	j := mustOpen(t, dir, Options{SegmentBytes: 5000, RetainBytes: 50_000})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 1000 {
			if _, err := j.AppendKeyed(context.Background(), fmt.Sprint(i), lines(i, 1)); err != nil {
				t.Error(err)
			}
		}
	}()
	for range 20 {
		before := j.Stats()
		a, err := Audit(dir, AuditOptions{From: before.First})
		first := j.First()
		if err != nil || len(a.Damage(first)) > 0 || a.Twice > 0 || a.Next < before.Next || a.Count(first, before.Next) != before.Next-min(first, before.Next) {
			t.Errorf("first %d, %+v: %+v, %v", first, before, a, err)
			break
		}
	}
	<-done
}

// EachFrame finds what a Reader finds, also where something is damaged.
func TestEachFrame(t *testing.T) {
	for name, damage := range map[string]func(mem *disktest.Mem){
		"sound":            func(*disktest.Mem) {},
		"a line":           func(mem *disktest.Mem) { edit(t, mem, seg1, flipAt(segmentHeaderSize+frameHeaderSize+5)) },
		"a frame's header": func(mem *disktest.Mem) { edit(t, mem, seg1, flipAt(segmentHeaderSize+5)) },
		"a header":         func(mem *disktest.Mem) { edit(t, mem, seg1, flipAt(5)) },
		"a torn tail":      func(mem *disktest.Mem) { edit(t, mem, last, func(b []byte) []byte { return b[:len(b)-1] }) },
	} {
		mem := memJournal(t, 2, 4, 3)
		damage(mem)
		found := func(from uint64) (got []uint64) {
			list, err := eachFrame(mem, "/j", from, func(f Frame) error {
				for i := range f.Records {
					got = append(got, f.First+uint64(i))
				}
				return nil
			})
			if err != nil || (len(list) == 0) != (name == "sound") {
				t.Errorf("%s: %v, %v", name, list, err)
			}
			return got
		}
		if _, err := eachFrame(mem, "/j", 0, func(Frame) error { return io.ErrClosedPipe }); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%s: %v", name, err)
		}
		all, part := found(0), found(9)
		if i := slices.IndexFunc(all, func(n uint64) bool { return n >= 8 }); !slices.Equal(part, all[i:]) {
			t.Errorf("%s: %v from offset 9", name, part)
		}
		j := mustOpen(t, "/j", Options{Disk: mem})
		if want, _ := readAll(t, j); !slices.Equal(all, want) {
			t.Errorf("%s: %v, want %v", name, all, want)
		}
	}
}

// lastBody is a byte of the last frame of seg0 and of seg1.
const lastBody = 1000

// flipAt returns a change of one bit.
func flipAt(at int) func([]byte) []byte {
	return func(b []byte) []byte { b[(len(b)+at)%len(b)] ^= 1; return b }
}

// scripted is a folder as each of several listings sees it.
type scripted struct {
	disk.FS
	listings [][]string
}

func (s *scripted) List(string) (entries []disk.Entry, err error) {
	for _, name := range s.listings[0] {
		entries = append(entries, disk.Entry{Name: name})
	}
	s.listings = s.listings[1:]
	return entries, nil
}

// Segments that come and are sealed while the folder is listed make no gap: what
// one listing misses is found by another, or not looked at.
func TestListingsBesideAWriter(t *testing.T) {
	open := func(first uint64) string { return segmentName(first, extOpen) }
	sealed := func(first uint64) string { return segmentName(first, extSealed) }
	var rep AuditReport
	files, err := rep.list(&scripted{listings: [][]string{
		{sealed(0), open(3)},
		{sealed(0), sealed(3), open(9)},              // 6 came, and was sealed just then
		{sealed(0), sealed(3), sealed(6), sealed(9)}, // 12 is, and
		{sealed(0), sealed(6), sealed(9), open(15)},  // 3 is missed for no reason that we know of
	}}, "")
	testkit.OK(t, err)
	var got []uint64
	for _, f := range files {
		got = append(got, f.first)
	}
	if want := []uint64{0, 3, 6, 9}; !slices.Equal(got, want) {
		t.Errorf("segments %v, want %v", got, want)
	}
}

// sealing is a folder whose open segment is sealed just before it is opened.
type sealing struct{ *disktest.Mem }

func (s sealing) OpenFile(path string, flag int, perm os.FileMode) (disk.File, error) {
	if base, isOpen := strings.CutSuffix(path, extOpen); isOpen {
		s.Rename(path, base+extSealed)
	}
	return s.Mem.OpenFile(path, flag, perm)
}

// A segment that is sealed between the listing and the reading is read.
func TestSegmentSealedSinceItWasListed(t *testing.T) {
	for name, count := range map[string]func(fsys disk.FS) (uint64, error){
		"audit": func(fsys disk.FS) (uint64, error) {
			rep, err := audit(fsys, "/j", AuditOptions{})
			return uint64(rep.Records), err
		},
		"frames": func(fsys disk.FS) (n uint64, err error) {
			_, err = eachFrame(fsys, "/j", 0, func(f Frame) error { n += uint64(f.Records); return nil })
			return n, err
		},
	} {
		if n, err := count(sealing{memJournal(t, 2, 4, 3)}); n != 22 || err != nil {
			t.Errorf("%s: %d records, %v, want 22", name, n, err)
		}
	}
}

// deleting is a folder whose segments up to one are deleted just before it is
// opened, or that one alone.
type deleting struct {
	*disktest.Mem
	all bool
}

func (d deleting) OpenFile(path string, flag int, perm os.FileMode) (disk.File, error) {
	if path == seg1 {
		d.Remove(seg1)
		if d.all {
			d.Remove("/j/00000000000000000000.seg")
		}
	}
	return d.Mem.OpenFile(path, flag, perm)
}

// What retention deletes between the listing and the reading is neither damage nor
// an error; what is missing behind something older is.
func TestSegmentDeletedSinceItWasListed(t *testing.T) {
	for _, all := range []bool{true, false} {
		rep, err := audit(deleting{memJournal(t, 3, 4, 3), all}, "/j", AuditOptions{})
		if err != nil || (len(rep.Damage(0)) == 0) != all || len(rep.List) != 3 || rep.Records != 22 || rep.Next != 30 || all != (len(rep.Findings) == 1) {
			t.Errorf("all before too: %v: %+v, %v", all, rep, err)
		} else if f := rep.Findings[0]; all && (f.Kind != recordlog.Deleted || f.From != 8 || f.To != 16) {
			t.Errorf("%v", f)
		}
		n := 0
		_, err = eachFrame(deleting{memJournal(t, 3, 4, 3), all}, "/j", 0, func(f Frame) error { n += f.Records; return nil })
		if all && (err != nil || n != 22) || !all && err == nil {
			t.Errorf("all before too: %v: %d records, %v", all, n, err)
		}
	}
	// Of those that are left alone, the first is the first that could be read.
	fsys := deleting{memJournal(t, 3, 4, 3), true}
	a, err := audit(fsys, "/j", AuditOptions{From: 8})
	if err != nil || len(a.Damage(0)) > 0 || a.First != 16 || a.Records != 14 {
		t.Errorf("%+v, %v", a, err)
	}
}

// A segment of another user is not read: the journal leaves it alone, too.
func TestAuditOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("only root can make files of others")
		return
	}
	dir := t.TempDir()
	j := mustOpen(t, dir, Options{})
	mustAppend(t, j, lines(0, 2))
	testkit.OK(t, j.Close())
	testkit.OK(t, os.Chown(filepath.Join(dir, segmentName(0, extOpen)), 12345, 12345))
	a, err := Audit(dir, AuditOptions{})
	if testkit.OK(t, err); len(a.Damage(0)) == 0 || a.Records != 0 {
		t.Errorf("%+v", a)
	}
}
