package journal

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/internal/disktest"
	"github.com/rollway/rollway/internal/recordlog"
	"github.com/rollway/rollway/internal/testkit"
)

// ledger follows what a test was told about numbered batches of 2 records.
type ledger struct {
	mu       sync.Mutex
	stored   map[uint64]int // first offset → batch number
	unsynced map[int]bool   // answered ErrNotSynced: stored, offset not told
	failed   map[int]bool   // answered with another error: not stored
}

func newLedger() *ledger {
	return &ledger{stored: map[uint64]int{}, unsynced: map[int]bool{}, failed: map[int]bool{}}
}

// append stores batch number n, whose lines carry the numbers 2n and 2n+1.
func (l *ledger) append(j *Journal, n int, synced bool) error {
	b := lines(2*n, 2)
	b.Synced = synced
	first, err := j.Append(context.Background(), b)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		l.stored[first] = n
	case errors.Is(err, ErrNotSynced):
		l.unsynced[n] = true
	default:
		l.failed[n] = true
	}
	return err
}

// check compares the ledger with what the journal holds: every acknowledged
// batch once and at its offset, every failed one not at all.
func (l *ledger) check(t testing.TB, j *Journal) {
	t.Helper()
	seen := map[int]int{}
	at := map[uint64]int{}
	r := j.NewReader(0)
	defer r.Close()
	for {
		f, ok, err := r.TryNext()
		if err != nil && !strings.HasSuffix(err.Error(), "EOF") {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		for i, line := range strings.SplitAfter(strings.TrimSuffix(string(f.Lines), "\n"), "\n") {
			n, err := recordNumber(line)
			if err != nil {
				t.Fatalf("torn line %q: %v", line, err)
			}
			at[f.First+uint64(i)] = n
			seen[n]++
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for first, n := range l.stored {
		if at[first] != 2*n || at[first+1] != 2*n+1 || seen[2*n] != 1 || seen[2*n+1] != 1 {
			t.Fatalf("batch %d was acknowledged at %d; found %d and %d there, %d times", n, first, at[first], at[first+1], seen[2*n])
		}
	}
	for n := range l.unsynced {
		if seen[2*n] != 1 || seen[2*n+1] != 1 {
			t.Fatalf("batch %d was answered ErrNotSynced, found %d times", n, seen[2*n])
		}
	}
	for n := range l.failed {
		if seen[2*n]+seen[2*n+1] != 0 {
			t.Fatalf("batch %d failed, but is stored", n)
		}
	}
	if want := 2 * (len(l.stored) + len(l.unsynced)); len(seen) != want {
		t.Fatalf("%d records stored, want %d", len(seen), want)
	}
}

func TestDiskFullThenHeal(t *testing.T) {
	mem := disktest.NewMem()
	j, err := Open("/j", Options{Disk: mem, SegmentBytes: 2000})
	testkit.OK(t, err)
	l := newLedger()
	mem.SetLimit(5000)
	var full int
	for n := range 40 {
		if err := l.append(j, n, n%3 == 0); errors.Is(err, ErrFull) {
			full++
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(err)
			}
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if full == 0 || full == 40 {
		t.Fatalf("%d of 40 refused", full)
	}
	l.check(t, j)
	mem.SetLimit(0)
	for n := 40; n < 80; n++ {
		testkit.OK(t, l.append(j, n, false))
	}
	l.check(t, j)
	if st := j.Stats(); st.Full != uint64(full) || st.Appends != uint64(80-full) || st.LastError == nil {
		t.Fatalf("%+v", st)
	}
	testkit.OK(t, j.Close())
	j, err = Open("/j", Options{Disk: mem})
	testkit.OK(t, err)
	defer j.Close()
	for _, f := range j.Recovery().Findings {
		if f.Kind != recordlog.NoFooter { // of a segment that was sealed on the full disk
			t.Errorf("finding %v", f)
		}
	}
	l.check(t, j)
}

// A disk that is full from the start must not keep the journal from opening.
func TestOpenOnFullDisk(t *testing.T) {
	mem := memJournal(t, 1, 4, 3)
	mem.SetLimit(1)
	j, err := Open("/j", Options{Disk: mem})
	testkit.OK(t, err)
	defer j.Close()
	if offsets, _ := readAll(t, j); len(offsets) != 14 {
		t.Fatal(offsets)
	}
	if _, err := j.Append(context.Background(), lines(0, 1)); !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
}

func TestMaxBytes(t *testing.T) {
	j := mustOpen(t, t.TempDir(), Options{MaxBytes: 3000, SegmentBytes: 1000})
	l := newLedger()
	for n := range 30 {
		l.append(j, n, false)
	}
	if st := j.Stats(); st.Bytes > 3000 || st.Full == 0 || st.Appends == 0 {
		t.Fatalf("%+v", st)
	}
	if _, err := j.Append(context.Background(), lines(100, 1)); !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "3000") {
		t.Fatal(err)
	}
	l.check(t, j)
	if err := j.Close(); err != nil { // which waits for footers
		t.Fatal(err)
	}
	bytes := int64(0)
	for _, ext := range []string{extOpen, extSealed} {
		names, _ := filepath.Glob(filepath.Join(j.dir, "*"+ext)) // the pattern is valid
		for _, name := range names {
			info, err := os.Stat(name)
			testkit.OK(t, err)
			bytes += info.Size()
		}
	}
	if bytes == 0 || bytes > 3000 {
		t.Errorf("%d bytes in segments, footers included", bytes)
	}
}

// Faults at random on writes, truncations, creations, renames, removals and
// fsyncs, with concurrent appenders: the ledger holds while running and after
// a restart.
func TestRandomFaults(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			var mu sync.Mutex
			var calm atomic.Bool
			mem := disktest.NewMem()
			faulty := &disktest.Faulty{FS: mem, Hook: func(op disktest.Op) disktest.Fault {
				mu.Lock()
				defer mu.Unlock()
				if calm.Load() {
					return disktest.Fault{}
				}
				switch op.Kind {
				case disktest.Write:
					if rng.IntN(6) == 0 {
						return disktest.Fault{Err: []error{syscall.ENOSPC, syscall.EIO, syscall.EDQUOT, syscall.EFBIG}[rng.IntN(4)], Short: rng.IntN(op.Len + 1)}
					}
				case disktest.Truncate, disktest.Sync, disktest.Rename, disktest.SyncDir:
					if rng.IntN(5) == 0 {
						return disktest.Fault{Err: syscall.EIO}
					}
				case disktest.Open:
					if rng.IntN(8) == 0 {
						return disktest.Fault{Err: syscall.EMFILE}
					}
				}
				return disktest.Fault{}
			}}
			calm.Store(true)
			j, err := Open("/j", Options{Disk: faulty, SegmentBytes: 1500, Pack: seed%2 == 1})
			testkit.OK(t, err)
			calm.Store(false)
			l := newLedger()
			var wg sync.WaitGroup
			for p := range 3 {
				wg.Go(func() {
					for i := range 30 {
						l.append(j, p*1000+i, i%4 == 0)
					}
				})
			}
			wg.Wait()
			calm.Store(true)
			l.check(t, j)
			if err := l.append(j, 9000, true); err != nil && !errors.Is(err, ErrNotSynced) {
				t.Fatalf("after the faults: %v", err)
			}
			err = j.Close()
			if len(l.unsynced) > 0 && !errors.Is(err, ErrNotSynced) {
				t.Fatalf("Close forgot the failed fsyncs: %v", err)
			}
			j, err = Open("/j", Options{Disk: mem})
			testkit.OK(t, err)
			defer j.Close()
			for _, f := range j.Recovery().Findings {
				if f.Kind != recordlog.TornTail && f.Kind != recordlog.NoFooter {
					t.Errorf("finding %v", f)
				}
			}
			l.check(t, j)
		})
	}
}

// A failed fsync is never called again on that file, and the journal moves on
// to a new one.
func TestFailedFsync(t *testing.T) {
	var mu sync.Mutex
	syncs := map[string]int{}
	fail := ""
	mem := disktest.NewMem()
	j, err := Open("/j", Options{Disk: &disktest.Faulty{FS: mem, Hook: func(op disktest.Op) disktest.Fault {
		mu.Lock()
		defer mu.Unlock()
		if op.Kind == disktest.Sync {
			syncs[op.Name]++
			if op.Name == fail {
				return disktest.Fault{Err: syscall.EIO}
			}
		}
		return disktest.Fault{}
	}}})
	testkit.OK(t, err)
	l := newLedger()
	testkit.OK(t, l.append(j, 0, true))
	mu.Lock()
	fail = "/j/00000000000000000000.open"
	mu.Unlock()
	if err := l.append(j, 1, true); !errors.Is(err, ErrNotSynced) || !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	for n := 2; n < 6; n++ {
		testkit.OK(t, l.append(j, n, true))
	}
	l.check(t, j)
	if err := j.Close(); !errors.Is(err, ErrNotSynced) {
		t.Fatalf("Close: %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if syncs[fail] != 2 || syncs["/j/00000000000000000004.open"] == 0 {
		t.Fatal(syncs)
	}
	if err := j.Close(); !errors.Is(err, ErrNotSynced) {
		t.Fatalf("second Close: %v", err)
	}
}

// A stalled write holds up neither Stats nor readers nor those whose context
// ends; what had a place is stored when the disk comes back.
func TestStalledWrite(t *testing.T) {
	stall, stalled := make(chan struct{}), make(chan struct{}, 1)
	var armed atomic.Bool
	mem := disktest.NewMem()
	j, err := Open("/j", Options{Disk: &disktest.Faulty{FS: mem, Hook: func(op disktest.Op) disktest.Fault {
		if op.Kind == disktest.Write && isSegment(op.Name) && armed.CompareAndSwap(true, false) {
			stalled <- struct{}{}
			<-stall
		}
		return disktest.Fault{}
	}}})
	testkit.OK(t, err)
	l := newLedger()
	testkit.OK(t, l.append(j, 0, false))
	armed.Store(true)
	var wg sync.WaitGroup
	wg.Go(func() { l.append(j, 1, false) })
	<-stalled
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 3)
	for range cap(done) {
		go func() {
			_, err := j.Append(ctx, lines(777, 1))
			done <- err
		}()
	}
	waitQueued(t, j, cap(done))
	wg.Go(func() { l.append(j, 2, false) })
	waitQueued(t, j, cap(done)+1)
	if st := j.Stats(); st.Next != 2 {
		t.Fatalf("%+v", st)
	}
	if offsets, _ := readAll(t, j); !slices.Equal(offsets, upTo(2)) {
		t.Fatal(offsets)
	}
	cancel()
	for range cap(done) {
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	close(stall)
	wg.Wait()
	l.check(t, j)
	testkit.OK(t, j.Close())
}

// waitQueued returns when n appenders wait for a place.
func waitQueued(t *testing.T, j *Journal, n int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		j.mu.Lock()
		have := 0
		for w := j.queue.head; w != nil; w = w.next {
			have++
		}
		j.mu.Unlock()
		if have == n {
			return
		}
	}
	t.Fatalf("%d appenders do not come to wait", n)
}

// A write that failed after its bytes reached the file leaves nothing behind,
// also when the rollback fails, as long as a later write succeeds.
func TestFailedWriteIsNotStored(t *testing.T) {
	for _, rollbackFails := range []bool{false, true} {
		var armed atomic.Bool
		mem := disktest.NewMem()
		j, err := Open("/j", Options{Disk: &disktest.Faulty{FS: mem, Hook: func(op disktest.Op) disktest.Fault {
			switch {
			case op.Kind == disktest.Write && isSegment(op.Name) && armed.Load():
				return disktest.Fault{Err: syscall.EIO, Short: op.Len}
			case op.Kind == disktest.Truncate && rollbackFails:
				return disktest.Fault{Err: syscall.EIO}
			}
			return disktest.Fault{}
		}}})
		testkit.OK(t, err)
		l := newLedger()
		l.append(j, 0, false)
		armed.Store(true)
		if err := l.append(j, 1, false); !errors.Is(err, syscall.EIO) {
			t.Fatal(err)
		}
		armed.Store(false)
		if rollbackFails {
			testkit.OK(t, l.append(j, 2, false))
		}
		l.check(t, j)
		j.Close()
		for range 2 {
			j, err = Open("/j", Options{Disk: mem})
			testkit.OK(t, err)
			l.check(t, j)
			for _, f := range j.Recovery().Findings {
				if !rollbackFails || f.Kind != recordlog.TornTail {
					t.Error(f)
				}
			}
			j.Close()
		}
	}
}

// A batch in pieces whose write fails, and its rollback too, is in no sealed
// segment: sent again after a restart it is stored, whole and once.
func TestFailedPiecesAreNotSealed(t *testing.T) {
	var faulty atomic.Bool
	mem := disktest.NewMem()
	o := Options{MaxGroupBytes: 1000, Disk: &disktest.Faulty{FS: mem, Hook: func(op disktest.Op) disktest.Fault {
		switch {
		case !faulty.Load():
			return disktest.Fault{}
		case op.Kind == disktest.Write && isSegment(op.Name) && op.Off > 1000: // the second piece
			return disktest.Fault{Err: syscall.EIO, Short: op.Len / 2}
		case op.Kind == disktest.Truncate:
			faulty.Store(false)
			return disktest.Fault{Err: syscall.EIO}
		}
		return disktest.Fault{}
	}}}
	j, err := Open("/j", o)
	testkit.OK(t, err)
	if _, err := j.AppendKeyed(t.Context(), "before", lines(0, 1)); err != nil {
		t.Fatal(err)
	}
	batch := lines(1000, 20)
	faulty.Store(true)
	if r, err := j.AppendKeyed(t.Context(), "pieces", batch); !errors.Is(err, syscall.EIO) {
		t.Fatalf("%+v, %v", r, err)
	}
	if err := j.Close(); err != nil { // seals the segment
		t.Fatal(err)
	}
	for _, again := range []bool{false, true} {
		if j, err = Open("/j", o); err != nil {
			t.Fatal(err)
		}
		r, err := j.AppendKeyed(t.Context(), "pieces", batch)
		if err != nil || r.Duplicate != again || r.First != 1 {
			t.Errorf("sent again: %+v, %v", r, err)
		}
		if got := read(j, 0, 21); got != string(lines(0, 1).Lines)+string(batch.Lines) || j.Next() != 21 {
			t.Errorf("%d records: %q", j.Next(), got)
		}
		testkit.OK(t, j.Close())
	}
}

// A segment that cannot be deleted stays, is read and is counted as kept. One that is
// deleted just when a reader opens it is a gap, and no error.
func TestDeletionFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failing, deleting atomic.Bool
		var j *Journal
		mem := memJournal(t, 3, 4, 1)
		j, err := Open("/j", Options{RetainBytes: 1, Hold: []string{"later"}, Disk: &disktest.Faulty{FS: mem, Hook: func(op disktest.Op) disktest.Fault {
			switch {
			case op.Kind == disktest.Remove && failing.Load():
				return disktest.Fault{Err: syscall.EIO}
			case op.Kind == disktest.Open && op.Name == seg1 && deleting.CompareAndSwap(true, false):
				j.deleteOld(time.Now(), 0)
			}
			return disktest.Fault{}
		}}})
		testkit.OK(t, err)
		defer j.Close()
		synctest.Wait() // from now on the keeper has nothing to do
		c, err := j.OpenCursor("later", false)
		testkit.OK(t, err)
		defer c.Close()
		before := j.Stats()
		failing.Store(true)
		j.deleteOld(time.Now(), 0)
		if st := j.Stats(); st.First != 0 || st.DeletedRecords+st.DeletedSegments != 0 || st.Bytes != before.Bytes || !errors.Is(st.LastError, syscall.EIO) {
			t.Errorf("nothing could be deleted: %+v", st)
		}
		if offsets, gaps := readAll(t, j); len(offsets) != 26 || len(gaps) > 0 {
			t.Errorf("read %d, gaps %v", offsets, gaps)
		}
		failing.Store(false)
		deleting.Store(true)
		r := j.NewReader(9)
		defer r.Close()
		_, _, err = r.TryNext()
		if gap := (*Gap)(nil); !errors.As(err, &gap) || gap.From != 9 || gap.To != 24 {
			t.Errorf("deleted while it is opened: %v", err)
		}
		if f, ok, err := r.TryNext(); !ok || err != nil || f.First != 24 {
			t.Errorf("after it: %+v, %v, %v", f, ok, err)
		}
		if st := j.Stats(); st.First != 24 || st.DeletedRecords != 24 || st.DeletedSegments != 3 {
			t.Errorf("%+v", st)
		}
	})
}

// removing keeps what is left after the removal of each sealed segment.
type removing struct {
	*disktest.Mem
	left []*disktest.Mem
}

func (r *removing) Remove(name string) error {
	err := r.Mem.Remove(name)
	if strings.HasSuffix(name, extSealed) {
		r.left = append(r.left, r.KillClone())
	}
	return err
}

// A journal that was closed, and is killed while retention deletes as the next process starts,
// misses nothing.
func TestKilledWhileRetentionStarts(t *testing.T) {
	d := &removing{Mem: memJournal(t, 3, 4, 1)}
	j, err := Open("/j", Options{RetainBytes: 1, Disk: d})
	testkit.OK(t, err)
	for end := time.Now().Add(time.Minute); j.Stats().DeletedSegments < 3; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not deleted within a minute: %+v", j.Stats())
		}
	}
	testkit.OK(t, j.Close())
	if len(d.left) != 3 {
		t.Fatalf("%d segments were removed", len(d.left))
	}
	for i, disk := range d.left {
		if rep, err := audit(disk, "/j", AuditOptions{}); err != nil || len(rep.Damage(0)) > 0 {
			t.Errorf("%d removed: the audit finds %v, %v", i+1, rep.Damage(0), err)
		}
		j, err := Open("/j", Options{RetainBytes: 1, Disk: disk})
		testkit.OK(t, err)
		for _, f := range j.Recovery().Findings {
			if f.Kind != recordlog.Deleted || f.To != uint64(i+1)*8 {
				t.Errorf("%d removed: %v", i+1, f)
			}
		}
		testkit.OK(t, j.Close())
	}
}

// While no fsync succeeds, the disk is not filled with segments.
func TestFsyncNeverSucceeds(t *testing.T) {
	mem := disktest.NewMem()
	j, err := Open("/j", Options{Disk: &disktest.Faulty{FS: mem, Hook: func(op disktest.Op) disktest.Fault {
		if op.Kind == disktest.Sync {
			return disktest.Fault{Err: syscall.EIO}
		}
		return disktest.Fault{}
	}}})
	testkit.OK(t, err)
	l := newLedger()
	for n := range 200 {
		if err := l.append(j, n, n%2 == 0); n%2 == 0 && !errors.Is(err, ErrNotSynced) || n%2 == 1 && err != nil {
			t.Fatal(err)
		}
	}
	if n := j.Stats().Segments; n < 2 || n > 10 {
		t.Fatalf("%d segments", n)
	}
	l.check(t, j)
	if err := j.Close(); !errors.Is(err, ErrNotSynced) {
		t.Fatal(err)
	}
}

// With a retention the journal is a ring: MaxBytes never refuses.
func TestRetentionMakesRoom(t *testing.T) {
	for _, retain := range []int64{2000, 4000, 9000} {
		j := mustOpen(t, t.TempDir(), Options{MaxBytes: 4000, RetainBytes: retain, SegmentBytes: 800})
		for i := range 200 {
			mustAppend(t, j, lines(2*i, 2))
			if i%3 == 0 { // let the keeper seal what is full
				for j.nextRetired() != nil {
					time.Sleep(time.Millisecond)
				}
			}
		}
		if st := j.Stats(); st.Full > 0 || st.Bytes > 4000 || st.DeletedRecords == 0 {
			t.Errorf("retain %d: %+v", retain, st)
		}
		first := j.First()
		offsets, _ := readAll(t, j)
		for first != j.First() { // the keeper deleted a segment meanwhile
			first = j.First()
			offsets, _ = readAll(t, j)
		}
		if uint64(len(offsets)) != j.Next()-first {
			t.Errorf("retain %d: %d records of %d to %d", retain, len(offsets), j.First(), j.Next())
		}
	}
}

// TestRetentionWithinASegment: what is too much is deleted also while no segment
// is begun.
func TestRetentionWithinASegment(t *testing.T) {
	const retain = 1500
	j := mustOpen(t, t.TempDir(), Options{RetainBytes: retain, SegmentBytes: 800})
	for i := range 100 {
		mustAppend(t, j, lines(2*i, 2))
		for deadline := time.Now().Add(time.Minute); j.Stats().Bytes > retain; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("after %d appends: %+v", i+1, j.Stats())
			}
		}
	}
}

// TestManifestIsTriedAgain: a manifest that could not be written, as by a disk that is
// full for a moment, is written when the journal goes on.
func TestManifestIsTriedAgain(t *testing.T) {
	mem := disktest.NewMem()
	j, err := Open("/j", Options{Disk: mem})
	testkit.OK(t, err)
	testkit.OK(t, errors.Join(newLedger().append(j, 0, true), j.Close()))
	failed, written := make(chan struct{}), make(chan struct{})
	var once sync.Once
	hook := func(op disktest.Op) (f disktest.Fault) {
		switch {
		case op.Kind == disktest.Open && op.Name == "/j/"+manifestFile+recordlog.ExtNew:
			once.Do(func() { f.Err = syscall.ENOSPC; close(failed) })
		case op.Kind == disktest.Rename && op.To == "/j/"+manifestFile:
			select {
			case written <- struct{}{}:
			case <-t.Context().Done():
			}
		}
		return f
	}
	if j, err = Open("/j", Options{Disk: &disktest.Faulty{FS: mem, Hook: hook}}); err != nil {
		t.Fatal(err)
	}
	<-failed
	l, begin := newLedger(), time.Now()
	for n := 1; ; n++ {
		testkit.OK(t, l.append(j, n, false))
		if time.Since(begin) > 30*time.Second {
			t.Fatal("it is not written")
		}
		select {
		case <-written:
		default:
			continue
		}
		break
	}
	go func() { <-written }() // at the end
	testkit.OK(t, j.Close())
}
