package spool

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/internal/disktest"
	"github.com/rollway/rollway/internal/recordlog"
	"github.com/rollway/rollway/internal/testkit"
)

// A segment between others is missing or a folder: its lines are counted, and
// stay counted after a restart.
func TestSegmentInTheMiddle(t *testing.T) {
	const middle = "/s/00000000000000000010.spool"
	for _, replace := range []bool{false, true} {
		mem := disktest.NewMem()
		s := mustOpen(t, mem, Options{SegmentBytes: 100})
		for n := range uint64(3) {
			mustAppend(t, s, texts(n*10, n*10+10))
		}
		s.Close()
		testkit.OK(t, mem.Remove(middle))
		if replace {
			folder(t, mem, middle)
		}
		s = mustOpen(t, mem, Options{})
		if s.Stats().Recovered != 30 {
			t.Errorf("%+v", s.Stats())
		}
		want(t, drain(t, s), texts(0, 10)+texts(20, 30))
		if st := s.Stats(); st.Dropped.Damaged != 10 || st.Acked != 20 {
			t.Errorf("%+v", st)
		}
		told := false
		for _, f := range s.Findings() {
			told = told || f.Kind == recordlog.Damaged && f.Lines == 10 && strings.Contains(f.String(), "00000000000000000010.spool is gone")
		}
		if !told {
			t.Error("nothing names the file")
		}
	}
}

// A gap before the first segment is counted once, also if the process is killed
// before it has read anything.
func TestGapIsCountedOnce(t *testing.T) {
	mem := twoSegments(t)
	testkit.OK(t, mem.Remove(seg0))
	if st := mustOpen(t, mem, Options{}).Stats(); st.Dropped.Damaged != 30 || st.Recovered != 70 || st.Lines != 40 {
		t.Fatalf("%+v", st)
	}
	if st := mustOpen(t, mem.KillClone(), Options{}).Stats(); st.Dropped.Damaged != 0 || st.Recovered != 40 {
		t.Fatalf("%+v", st)
	}
}

// What was appended is known after a kill from the cursor, which Append writes
// every 100 ms.
func TestCutAfterAKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := disktest.NewMem()
		s := mustOpen(t, mem, Options{})
		mustAppend(t, s, texts(0, 10))
		mustAppend(t, s, texts(10, 20))
		time.Sleep(saveEvery)
		mustAppend(t, s, texts(20, 30))
		mustAppend(t, s, texts(30, 40)) // not known to the cursor
		killed := mem.KillClone()
		testkit.OK(t, killed.WriteFile(seg0, nil))
		again := mustOpen(t, killed, Options{})
		want(t, drain(t, again), "")
		if st := again.Stats(); st.Recovered != 30 || st.Dropped.Damaged != 30 {
			t.Fatalf("%+v", st)
		}
		testkit.OK(t, s.Sync())
		killed = mem.KillClone()
		testkit.OK(t, killed.Remove(seg0))
		if st := mustOpen(t, killed, Options{}).Stats(); st.Recovered != 40 || st.Dropped.Damaged != 40 {
			t.Fatalf("%+v", st)
		}
		want(t, drain(t, s), texts(0, 40))
	})
}

// A cursor that cannot be written goes before the segments that it points to:
// lines that were settled do not pass for lost.
func TestStaleCursorIsNoGap(t *testing.T) {
	mem := twoSegments(t)
	d, set := failing(mem)
	s := mustOpen(t, d, Options{})
	set(func(op disktest.Op) error {
		if op.Kind == disktest.Write && op.Name == "/s/CURSOR" {
			return syscall.EIO
		}
		return nil
	})
	b := mustNext(t, s)
	mustAck(t, s, b, len(b.Data))
	if b, err := mem.ReadFile(seg0); err == nil {
		t.Fatalf("still there: %d bytes", len(b))
	}
	again := mustOpen(t, mem.KillClone(), Options{})
	if st := again.Stats(); st.Dropped.Total() > 0 || st.Recovered != 40 {
		t.Fatalf("%+v", st)
	}
	set(nil)
	want(t, drain(t, s), texts(40, 80))
}

// openReal opens a spool in a folder of its own on the system's disk.
func openReal(t *testing.T) (dir string, s *Spool) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "spool")
	s, err := Open(dir, Options{})
	testkit.OK(t, err)
	t.Cleanup(func() { s.Close() })
	return dir, s
}

func kinds(s *Spool) (all string) {
	for _, f := range s.Findings() {
		all += f.File + " " + string(f.Kind) + ";"
	}
	return all
}

// The folder is renamed away under the spool, another owner takes its place,
// and it comes back.
func TestFolderIsReplaced(t *testing.T) {
	if os.PathSeparator == '\\' {
		t.Skip("Windows renames no folder in which a file is open")
	}
	synctest.Test(t, func(t *testing.T) {
		dir, s := openReal(t)
		mustAppend(t, s, texts(0, 10))
		b := mustNext(t, s)
		mustAppend(t, s, texts(10, 20))
		testkit.OK(t, os.Rename(dir, dir+".away"))
		other, err := Open(dir, Options{})
		testkit.OK(t, err)
		mustAppend(t, other, texts(100, 110)) // a segment and a cursor of the same names
		time.Sleep(time.Second)
		for range 2 {
			if err := s.Append([]byte(texts(20, 30))); !errors.Is(err, errGone) || !strings.Contains(err.Error(), "put it back") {
				t.Fatal(err)
			}
			balanced(t, s)
		}
		if st := s.Stats(); st.Refused != 20 || st.Dropped.Total() != 0 || st.Lines != 20 {
			t.Fatalf("%+v", st)
		}
		if k := kinds(s); k != "LOCK removed while in use;" {
			t.Error(k)
		}

		// What is stored is sent, and nothing of the other owner is touched.
		mustAck(t, s, b, len(b.Data))
		want(t, drainLoosely(t, s), texts(10, 20))
		otherB := mustNext(t, other)
		want(t, string(otherB.Data), texts(100, 110))
		if _, err := os.Stat(filepath.Join(dir, segmentName(0))); err != nil {
			t.Error(err)
		}
		mustAck(t, other, otherB, len(otherB.Data))
		testkit.OK(t, other.Close())

		testkit.OK(t, os.RemoveAll(dir))
		testkit.OK(t, os.Rename(dir+".away", dir))
		time.Sleep(time.Second)
		mustAppend(t, s, texts(20, 30))
		want(t, drain(t, s), texts(20, 30))
		testkit.OK(t, s.Close())
		if again, err := Open(dir, Options{}); err != nil || again.Stats().Recovered > 0 || again.Close() != nil {
			t.Fatal(err)
		}
	})
}

// The folder is deleted: what is stored is sent, no more is taken.
func TestFolderIsDeleted(t *testing.T) {
	if os.PathSeparator == '\\' {
		t.Skip("Windows deletes no file that holds a lock")
	}
	synctest.Test(t, func(t *testing.T) {
		dir, s := openReal(t)
		mustAppend(t, s, texts(0, 10))
		testkit.OK(t, os.RemoveAll(dir))
		time.Sleep(time.Second)
		if err := s.Append([]byte(texts(10, 20))); !errors.Is(err, errGone) {
			t.Fatal(err)
		}
		want(t, drainLoosely(t, s), texts(0, 10))
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the folder was made again: %v", err)
		}
	})
}

// The segment or the cursor is deleted: new lines go to another segment, and
// the cursor is written anew.
func TestFilesAreDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := disktest.NewMem()
		s := mustOpen(t, mem, Options{})
		mustAppend(t, s, texts(0, 10))
		for _, name := range []string{seg0, "/s/CURSOR"} {
			testkit.OK(t, mem.Remove(name))
		}
		time.Sleep(time.Second)
		mustAppend(t, s, texts(10, 20))
		if k := kinds(s); k != "CURSOR removed while in use;00000000000000000000.spool removed while in use;" {
			t.Error(k)
		}
		if st := s.Stats(); st.Segments != 2 || st.Lines != 20 {
			t.Errorf("%+v", st)
		}
		again := mustOpen(t, mem.KillClone(), Options{})
		if st := again.Stats(); st.Recovered != 20 || st.Dropped.Damaged != 10 || st.Lines != 10 {
			t.Errorf("after a kill %+v", st)
		}
		want(t, drain(t, again), texts(10, 20))
		want(t, drain(t, s), texts(0, 20)) // the file is open
	})
}
