package spool

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/rollway/rollway/internal/disktest"
)

// failing returns a disk whose operations fail while bad says so.
func failing(mem *disktest.Mem) (d *disktest.Faulty, set func(func(disktest.Op) error)) {
	var bad func(disktest.Op) error
	d = &disktest.Faulty{FS: mem, Hook: func(op disktest.Op) disktest.Fault {
		if bad == nil {
			return disktest.Fault{}
		}
		return disktest.Fault{Err: bad(op), Short: op.Len / 2}
	}}
	return d, func(f func(disktest.Op) error) { bad = f }
}

func kind(k disktest.Kind, err error) func(disktest.Op) error {
	return func(op disktest.Op) error {
		if op.Kind == k {
			return err
		}
		return nil
	}
}

func TestDiskFull(t *testing.T) {
	for _, full := range []Policy{Refuse, DropOldest} {
		mem := disktest.NewMem()
		mem.SetLimit(5600)
		s := mustOpen(t, mem, Options{SegmentBytes: 1000, Full: full})
		n := uint64(0)
		for ; n < 1000; n++ {
			if err := s.Append([]byte(texts(n*2, n*2+2))); err != nil {
				if !errors.Is(err, ErrFull) || !errors.Is(err, syscall.ENOSPC) {
					t.Fatal(err)
				}
				break
			}
		}
		for range 5 {
			if err := s.Append([]byte(texts(5000, 5100))); !errors.Is(err, ErrFull) {
				t.Fatal(err)
			}
			balanced(t, s)
		}
		st := s.Stats()
		if n < 40 || st.Lines != n*2 || st.Refused != 502 || st.Dropped.Total() != 0 || !errors.Is(st.LastError, syscall.ENOSPC) || st.LastErrorTime.IsZero() {
			t.Fatalf("%d: %+v", n, st)
		}
		want(t, drainLoosely(t, s), texts(0, n*2)) // also without room for the cursor
		mem.SetLimit(0)
		mustAppend(t, s, texts(0, 5))
		want(t, drain(t, s), texts(0, 5))
	}
}

// drainLoosely settles everything and returns it.
func drainLoosely(t testing.TB, s *Spool) string {
	t.Helper()
	var all strings.Builder
	for b := mustNext(t, s); b != nil; b = mustNext(t, s) {
		all.Write(b.Data)
		mustAck(t, s, b, len(b.Data))
	}
	return all.String()
}

// A write that fails and cannot be taken back does not harm what follows.
func TestRollBackFails(t *testing.T) {
	mem := disktest.NewMem()
	d, set := failing(mem)
	s := mustOpen(t, d, Options{})
	mustAppend(t, s, texts(0, 5))
	set(func(op disktest.Op) error {
		if op.Kind == disktest.Write || op.Kind == disktest.Truncate {
			return syscall.EIO
		}
		return nil
	})
	if err := s.Append([]byte(texts(100, 105))); !errors.Is(err, syscall.EIO) || errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
	set(nil)
	mustAppend(t, s, texts(5, 10))
	if st := s.Stats(); st.Segments != 2 {
		t.Errorf("%+v", st)
	}
	again := mustOpen(t, mem.KillClone(), Options{})
	want(t, drain(t, again), texts(0, 10))
	want(t, drain(t, s), texts(0, 10))
}

// leftOver returns a spool of the lines 0 to 4, in segments of that many bytes,
// and its disk, on which another append has failed although all of it was written,
// and which refused to take it back.
func leftOver(t *testing.T, segmentBytes int64) (*Spool, *disktest.Mem, *disktest.Faulty) {
	mem := disktest.NewMem()
	d := &disktest.Faulty{FS: mem, Hook: func(disktest.Op) disktest.Fault { return disktest.Fault{} }}
	s := mustOpen(t, d, Options{SegmentBytes: segmentBytes})
	mustAppend(t, s, texts(0, 5))
	d.Hook = func(op disktest.Op) disktest.Fault {
		if op.Kind == disktest.Truncate || op.Kind == disktest.Remove || op.Kind == disktest.Write && op.Off >= segmentHeader {
			return disktest.Fault{Err: syscall.EIO, Short: op.Len}
		}
		return disktest.Fault{}
	}
	if err := s.Append([]byte(texts(100, 103))); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	balanced(t, s)
	return s, mem, d
}

// What could not be taken back may be found after a kill until a later Append has
// stored lines, and not from then on.
func TestKillAfterRollBackFails(t *testing.T) {
	for _, segmentBytes := range []int64{1 << 20, 100} { // the lines follow others, or are in a segment of their own
		s, mem, d := leftOver(t, segmentBytes)
		var killed []*disktest.Mem
		d.Hook = func(disktest.Op) disktest.Fault {
			killed = append(killed, mem.KillClone())
			return disktest.Fault{}
		}
		mustAppend(t, s, texts(5, 7))
		d.Hook = func(disktest.Op) disktest.Fault { return disktest.Fault{} }
		killed = append(killed, mem.KillClone())
		found := make([]string, len(killed))
		for i, mem := range killed {
			found[i] = strings.TrimPrefix(drain(t, mustOpen(t, mem, Options{})), texts(0, 5))
		}
		if found[0] != texts(100, 103) || found[len(found)-1] != texts(5, 7) {
			t.Errorf("%q", found)
		}
		want(t, drain(t, s), texts(0, 7))
	}
}

// Close takes back what an Append could not.
func TestCloseRollsBack(t *testing.T) {
	for _, segmentBytes := range []int64{1 << 20, 100} {
		s, mem, d := leftOver(t, segmentBytes)
		refuse := d.Hook
		d.Hook = func(disktest.Op) disktest.Fault { return disktest.Fault{} }
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		again := mustOpen(t, mem, Options{})
		if st := again.Stats(); st.Recovered != 5 || st.Next != 5 {
			t.Errorf("%+v", st)
		}
		want(t, drain(t, again), texts(0, 5))

		s, _, d = leftOver(t, segmentBytes)
		d.Hook = refuse
		if err := s.Close(); !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), "roll back") {
			t.Errorf("refused again: %v", err)
		}
	}
}

// An fsync that failed is not believed when it is called again.
func TestSyncFails(t *testing.T) {
	mem := disktest.NewMem()
	d, set := failing(mem)
	s := mustOpen(t, d, Options{})
	mustAppend(t, s, texts(0, 5))
	set(kind(disktest.Sync, syscall.EIO))
	if err := s.Sync(); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	set(nil)
	if err := s.Sync(); !errors.Is(err, syscall.EIO) {
		t.Fatalf("second Sync = %v", err)
	}
	mustAppend(t, s, texts(5, 10))
	if st := s.Stats(); st.Segments != 2 {
		t.Errorf("%+v: written on in a file whose fsync failed", st)
	}
	b := mustNext(t, s)
	mustAck(t, s, b, len(b.Data))
	if err := s.Sync(); err != nil {
		t.Fatalf("after its lines were settled Sync = %v", err)
	}
	want(t, drain(t, s), texts(5, 10))
}

func TestReadFails(t *testing.T) {
	mem := twoSegments(t)
	d, set := failing(mem)
	s := mustOpen(t, d, Options{})
	set(kind(disktest.Read, syscall.EIO))
	for range maxReadFails - 1 {
		if _, err := s.Next(pieceBytes); !errors.Is(err, syscall.EIO) {
			t.Fatal(err)
		}
	}
	set(nil)
	want(t, drain(t, s), texts(10, 80)) // it passed

	mem = twoSegments(t)
	d, set = failing(mem)
	s = mustOpen(t, d, Options{})
	set(func(op disktest.Op) error { // for good, in the first segment
		if op.Kind == disktest.Read && op.Name == seg0 {
			return syscall.EIO
		}
		return nil
	})
	for range maxReadFails - 1 {
		if _, err := s.Next(pieceBytes); !errors.Is(err, syscall.EIO) {
			t.Fatal(err)
		}
		balanced(t, s)
	}
	want(t, drain(t, s), texts(40, 80))
	if st := s.Stats(); st.Dropped.Damaged != 30 {
		t.Errorf("%+v", st)
	}
	if f := s.Findings(); len(f) != 1 || f[0].Lines != 30 || !strings.Contains(f[0].String(), "input/output error") {
		t.Errorf("%v", f)
	}
}

// Files that the disk does not let go are removed later, in order.
func TestRemoveFails(t *testing.T) {
	mem := twoSegments(t)
	d, set := failing(mem)
	s := mustOpen(t, d, Options{})
	set(func(op disktest.Op) error {
		if op.Kind == disktest.Remove && op.Name == seg0 {
			return syscall.EBUSY
		}
		return nil
	})
	want(t, drainLoosely(t, s), texts(10, 80))
	if st := s.Stats(); st.Segments > 1 || st.Bytes < 2000 || !errors.Is(st.LastError, syscall.EBUSY) {
		t.Errorf("%+v", st)
	}
	if again := mustOpen(t, mem.KillClone(), Options{}); again.Stats().Lines != 0 {
		t.Errorf("%+v", again.Stats())
	}
	set(nil)
	mustAppend(t, s, texts(80, 81))
	want(t, drain(t, s), texts(80, 81))
}

func TestOpenFails(t *testing.T) {
	for _, k := range []disktest.Kind{disktest.Mkdir, disktest.Lock, disktest.List, disktest.Open, disktest.Read} {
		mem := twoSegments(t)
		d, set := failing(mem)
		set(kind(k, syscall.EIO))
		if _, err := Open("/s", Options{Disk: d}); !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: %v", k, err)
		}
		set(nil)
		want(t, drain(t, mustOpen(t, d, Options{})), texts(10, 80))
	}
}
