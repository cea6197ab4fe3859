package journal

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/disktest"
	"github.com/rollway/rollway/internal/recordlog"
	"github.com/rollway/rollway/internal/testkit"
)

func TestCursor(t *testing.T) {
	mem := disktest.NewMem()
	open := func() *Journal {
		t.Helper()
		j, err := Open("/j", Options{Disk: mem})
		testkit.OK(t, err)
		checkKinds(t, j, []FindingKind{})
		return j
	}
	cursor := func(j *Journal, want uint64, reset string) *Cursor {
		t.Helper()
		c, err := j.OpenCursor("kafka", true)
		testkit.OK(t, err)
		if c.Offset() != want || !strings.Contains(c.Reset(), reset) || (c.Reset() == "") != (reset == "") {
			t.Fatalf("cursor at %d, reset %q", c.Offset(), c.Reset())
		}
		return c
	}
	j := open()
	mustAppend(t, j, lines(0, 10))
	c := cursor(j, 0, "")
	if _, err := j.OpenCursor("kafka", false); err == nil {
		t.Fatal("one cursor is open twice")
	}
	for _, name := range []string{"", "a/b", "..", "a.new", strings.Repeat("a", 65)} {
		if _, err := j.OpenCursor(name, false); err == nil {
			t.Fatalf("%q was taken as a name", name)
		}
	}
	testkit.OK(t, c.Save(7))
	j.Close()
	j = open()
	c = cursor(j, 7, "")
	c.Close()
	cursor(j, 7, "").Close()
	j.Close()

	good, err := mem.ReadFile("/j/cursors/kafka")
	testkit.OK(t, err)
	for _, tt := range []struct{ text, reset string }{
		{"", "damaged"},
		{string(good[:90]), "damaged"},
		{string(flipAt(24)(flipAt(recordlog.SlotSize + 24)(bytes.Clone(good)))), "damaged"},
		{cursorFile(strings.Repeat("0", idDigits), 7), "another journal"},
		{cursorFile("", 0), ""},
	} {
		testkit.OK(t, mem.WriteFile("/j/cursors/kafka", []byte(tt.text)))
		j = open()
		cursor(j, 0, tt.reset)
		j.Close()
	}
	// Where one slot is damaged, the other counts.
	for pos, want := range map[int]uint64{24: 0, recordlog.SlotSize + 24: 7} {
		testkit.OK(t, mem.WriteFile("/j/cursors/kafka", flipAt(pos)(bytes.Clone(good))))
		j = open()
		cursor(j, want, "")
		j.Close()
	}
	// One that leads knows that records were there: their offsets are not given again.
	testkit.OK(t, mem.WriteFile("/j/cursors/kafka", []byte(cursorFile("", 11))))
	j, err = Open("/j", Options{Disk: mem})
	testkit.OK(t, err)
	defer j.Close()
	checkKinds(t, j, []FindingKind{recordlog.Missing})
	cursor(j, 11, "")
	if first := mustAppend(t, j, lines(11, 1)); first != 11 {
		t.Errorf("the next record has offset %d", first)
	}
}

func cursorFile(id string, offset uint64) string {
	return string(recordlog.AppendFile(nil, recordlog.Header{Kind: recordlog.JournalCursor, First: offset}, []byte(id)))
}

// However the machine stops, a cursor is at an offset that was saved or is about
// to be, and all that is before it is there.
func TestCursorNeverLeads(t *testing.T) {
	mem := disktest.NewMem()
	rng := rand.New(rand.NewPCG(1, 2))
	saved, crashes := uint64(0), 0
	armed := false
	var mu sync.Mutex // the manifest is written in the background
	faulty := &disktest.Faulty{FS: mem, Hook: func(op disktest.Op) disktest.Fault {
		mu.Lock()
		defer mu.Unlock()
		if !armed || op.Kind == disktest.Read || op.Kind == disktest.List {
			return disktest.Fault{}
		}
		for _, crashed := range []*disktest.Mem{mem.KillClone(), mem.PowerCutClone(nil), mem.PowerCutClone(rng)} {
			crashes++
			j, err := Open("/j", Options{Disk: crashed})
			if err != nil {
				t.Error(err)
				return disktest.Fault{}
			}
			c, err := j.OpenCursor("c", false)
			if err != nil || c.Reset() != "" || c.Offset() < saved || c.Offset() > j.Next() {
				t.Errorf("%s %s: cursor at %d of %d (%s), saved was %d: %v", op.Kind, op.Name, c.Offset(), j.Next(), c.Reset(), saved, err)
			}
			j.Close()
		}
		return disktest.Fault{}
	}}
	j, err := Open("/j", Options{Disk: faulty})
	testkit.OK(t, err)
	c, err := j.OpenCursor("c", false)
	testkit.OK(t, err)
	for i := range 20 {
		mustAppend(t, j, lines(3*i, 3))
		mu.Lock()
		armed = true
		mu.Unlock()
		testkit.OK(t, c.Save(j.Next()))
		mu.Lock()
		armed, saved = false, j.Next()
		mu.Unlock()
	}
	j.Close()
	if crashes < 200 {
		t.Fatalf("%d crashes", crashes)
	}
}

// Retention keeps what a cursor holds; the journal then refuses lines, and goes
// on when the cursor does.
func TestCursorHolds(t *testing.T) {
	j := mustOpen(t, t.TempDir(), Options{SegmentBytes: 1000, RetainBytes: 2000, MaxBytes: 9000})
	holding, err := j.OpenCursor("sink", true)
	testkit.OK(t, err)
	if _, err := j.OpenCursor("loose", false); err != nil {
		t.Fatal(err)
	}
	l := newLedger()
	n := 0
	for ; n < 1000; n++ {
		if err = l.append(j, n, false); err != nil {
			break
		}
	}
	if !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "not been delivered by sink") {
		t.Fatalf("after %d batches: %v", n, err)
	}
	if j.First() != 0 {
		t.Fatalf("records below %d were deleted", j.First())
	}
	l.check(t, j)
	for j.nextRetired() != nil { // only what is sealed is deleted
		time.Sleep(time.Millisecond)
	}
	half := j.Next() / 2
	testkit.OK(t, holding.Save(half))
	if _, err := j.Append(t.Context(), lines(0, 1)); err != nil {
		t.Fatal(err)
	}
	for j.First() == 0 { // maintenance deletes
		time.Sleep(time.Millisecond)
	}
	if first := j.First(); first > half {
		t.Fatalf("the cursor is at %d, the oldest record at %d", half, first)
	}
	holding.Close()
	for range 100 {
		for j.nextRetired() != nil {
			time.Sleep(time.Millisecond)
		}
		if _, err := j.Append(t.Context(), lines(0, 1)); err != nil {
			t.Fatal(err)
		}
	}
}

// Retention holds for the cursors that are named to Open before they are opened,
// and for one that has never been saved too.
func TestHeldFromOpen(t *testing.T) {
	for _, saved := range []uint64{0, 25} {
		mem := disktest.NewMem()
		o := Options{Disk: mem, SegmentBytes: 1000}
		j := mustOpen(t, "/j", o)
		for i := range 50 {
			mustAppend(t, j, lines(i, 1))
		}
		c, err := j.OpenCursor("sink", true)
		testkit.OK(t, err)
		testkit.OK(t, c.Save(saved))
		testkit.OK(t, j.Close())
		o.RetainBytes, o.Hold = 1000, []string{"sink"}
		j = mustOpen(t, "/j", o)
		kept := func(until string) {
			t.Helper()
			for j.nextRetired() != nil { // only what is sealed is deleted
				time.Sleep(time.Millisecond)
			}
			j.deleteOld(time.Now(), 0)
			if got := j.First(); got > saved || saved > 0 && got == 0 {
				t.Fatalf("the cursor is at %d; when %s, the oldest record is %d", saved, until, got)
			}
		}
		kept("it is not open")
		if c, err = j.OpenCursor("sink", true); err != nil {
			t.Fatal(err)
		}
		kept("it is open")
		if _, err := j.OpenCursor("sink", true); err == nil {
			t.Fatal("it was opened twice")
		}
		c.Close()
		j.deleteOld(time.Now(), 0)
		if j.First() <= saved {
			t.Fatalf("it holds still: %d", j.First())
		}
		testkit.OK(t, j.Close())
	}
}

func TestCursorSaveFails(t *testing.T) {
	mem := disktest.NewMem()
	fail, full := disktest.Kind(""), false
	j, err := Open("/j", Options{Disk: &disktest.Faulty{FS: mem, Hook: func(op disktest.Op) disktest.Fault {
		if !strings.Contains(op.Name, cursorFolder) { // the background writes elsewhere
			return disktest.Fault{}
		}
		if op.Kind == fail {
			return disktest.Fault{Err: syscall.EIO}
		}
		// A full disk has no room for another file, or for another byte of one.
		if full && (op.Kind == disktest.Write && op.Off+int64(len(op.Data)) > recordlog.SlotSize+recordlog.HeaderSize+idDigits || strings.HasSuffix(op.Name, recordlog.ExtNew)) {
			return disktest.Fault{Err: syscall.ENOSPC}
		}
		return disktest.Fault{}
	}}})
	testkit.OK(t, err)
	defer j.Close()
	c, err := j.OpenCursor("c", true)
	testkit.OK(t, err)
	next := func(during disktest.Kind) {
		t.Helper()
		mustAppend(t, j, lines(int(j.Next()), 1))
		if fail = during; fail != "" {
			if err := c.Save(j.Next()); !errors.Is(err, syscall.EIO) || c.Offset() != j.Next()-1 {
				t.Errorf("%s fails: %v, cursor at %d", fail, err, c.Offset())
			}
			fail = ""
		}
		if err := c.Save(j.Next()); err != nil || c.Offset() != j.Next() {
			t.Error(err)
		}
		if offset, err := (&Cursor{j: j, name: "c"}).read(); err != nil || offset != j.Next() {
			t.Errorf("%d, %v", offset, err)
		}
	}
	for _, kind := range []disktest.Kind{disktest.Open, disktest.Write, disktest.Sync} {
		next(kind)
	}
	for _, kind := range []disktest.Kind{disktest.Write, disktest.Sync, disktest.Rename, disktest.SyncDir} {
		testkit.OK(t, mem.Remove(c.path())) // then a new one is made
		next(kind)
	}
	full = true
	next("")
	next(disktest.Write)
}
