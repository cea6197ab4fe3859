package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/disktest"
	"github.com/rollway/rollway/internal/testkit"
)

// Appenders, followers, late readers, rotation, retention, packing and Stats at
// once.
func TestStress(t *testing.T) {
	t.Run("as written", func(t *testing.T) { stress(t, false, 200_000) })
	t.Run("packed", func(t *testing.T) { stress(t, true, 30_000) })
}

func stress(t *testing.T, pack bool, retain int64) {
	j := mustOpen(t, t.TempDir(), Options{SegmentBytes: 20_000, RetainBytes: retain, MaxGroupBytes: 4000, Pack: pack})
	const producers, batches = 6, 400
	var acked atomic.Uint64
	var appending, reading sync.WaitGroup
	for p := range producers {
		appending.Go(func() {
			for i := range batches {
				b := lines(p*1_000_000+i*3, 3)
				b.Synced = i%50 == 0
				if _, err := j.Append(context.Background(), b); err != nil {
					t.Error(err)
					return
				}
				acked.Add(3)
			}
		})
	}
	for range 3 {
		reading.Go(func() {
			r := j.NewReader(0)
			defer r.Close()
			last := map[int]int{} // producer → number
			var seen, missed uint64
			for {
				f, err := r.Next(context.Background())
				var gap *Gap
				if errors.As(err, &gap) {
					missed += gap.Missed()
					continue
				}
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Error(err)
					return
				}
				for _, line := range strings.SplitAfter(strings.TrimSuffix(string(f.Lines), "\n"), "\n") {
					n, err := recordNumber(line)
					if err != nil {
						t.Errorf("torn line %q", line)
					}
					if before, ok := last[n/1_000_000]; ok && n <= before {
						t.Errorf("producer %d: %d after %d", n/1_000_000, n, before)
					}
					last[n/1_000_000] = n
					seen++
				}
			}
			if seen+missed != producers*batches*3 {
				t.Errorf("seen %d and missed %d are not %d", seen, missed, producers*batches*3)
			}
		})
	}
	stop := make(chan struct{})
	reading.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			j.Stats()
			r := j.NewReader(j.First())
			r.TryNext()
			r.Close()
		}
	})
	appending.Wait()
	close(stop)
	// An append beyond the bound wakes the keeper, and so does the end of a segment:
	// it may be behind, but it gets there without another. Close deletes nothing.
	for end := time.Now().Add(time.Minute); j.Stats().Bytes > retain && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
	reading.Wait()
	st := j.Stats()
	if st.Records != acked.Load() || st.Next != acked.Load() || st.Readers != 0 {
		t.Errorf("%+v", st)
	}
	if st.DeletedSegments == 0 || st.Bytes > retain {
		t.Errorf("retention: %+v", st)
	}
	t.Logf("%d appends in %d groups, %d fsyncs, %d segments deleted", st.Appends, st.Groups, st.Fsyncs, st.DeletedSegments)
}

// Concurrent Synced appends share fsyncs, and buffered ones do not wait for one.
func TestSharedFsync(t *testing.T) {
	hold, inSync := make(chan struct{}), make(chan struct{}, 100)
	j, err := Open("/j", Options{Disk: &disktest.Faulty{FS: disktest.NewMem(), Hook: func(op disktest.Op) disktest.Fault {
		if op.Kind == disktest.Sync && strings.HasSuffix(op.Name, extOpen) {
			inSync <- struct{}{}
			<-hold
		}
		return disktest.Fault{}
	}}})
	testkit.OK(t, err)
	l := newLedger()
	var wg sync.WaitGroup
	wg.Go(func() { l.append(j, 0, true) })
	<-inSync
	for n := 1; n <= 20; n++ {
		wg.Go(func() { l.append(j, n, true) })
	}
	for j.Next() < 42 {
		time.Sleep(time.Millisecond)
	}
	for n := 21; n < 30; n++ {
		if err := l.append(j, n, false); err != nil { // returns while the fsync hangs
			t.Fatal(err)
		}
	}
	if st := j.Stats(); st.Synced != 0 {
		t.Fatalf("%+v", st)
	}
	close(hold)
	wg.Wait()
	if st := j.Stats(); st.Fsyncs != 2 {
		t.Fatalf("%d fsyncs for 21 appends, want 2", st.Fsyncs)
	}
	l.check(t, j)
	testkit.OK(t, j.Close())
}

// Waiting appenders are written as groups of at most MaxGroupBytes.
func TestGroupLimit(t *testing.T) {
	one := len(lines(1000, 2).Lines)
	stall, stalled := make(chan struct{}), make(chan struct{}, 1)
	var armed atomic.Bool
	var writes []int
	j, err := Open("/j", Options{MaxGroupBytes: 3*one + 10, Disk: &disktest.Faulty{FS: disktest.NewMem(), Hook: func(op disktest.Op) disktest.Fault {
		if op.Kind == disktest.Write && isSegment(op.Name) {
			writes = append(writes, op.Len)
			if armed.CompareAndSwap(true, false) {
				stalled <- struct{}{}
				<-stall
			}
		}
		return disktest.Fault{}
	}}})
	testkit.OK(t, err)
	l := newLedger()
	l.append(j, 500, false)
	writes = nil
	armed.Store(true)
	var wg sync.WaitGroup
	wg.Go(func() { l.append(j, 501, false) })
	<-stalled
	for n := 502; n < 509; n++ {
		wg.Go(func() { l.append(j, n, false) })
	}
	waitQueued(t, j, 7)
	close(stall)
	wg.Wait()
	want := []int{64 + one, 64 + 3*one, 64 + 3*one, 64 + one}
	if !slices.Equal(writes, want) {
		t.Fatalf("writes of %d bytes, want %d", writes, want)
	}
	l.check(t, j)
	j.Close()
}

func TestRetainAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := disktest.NewMem()
		j, err := Open("/j", Options{Disk: mem, RetainAge: time.Hour, SegmentBytes: 600})
		testkit.OK(t, err)
		for i := range 10 {
			mustAppend(t, j, lines(2*i, 2))
		}
		time.Sleep(50 * time.Minute)
		mustAppend(t, j, lines(20, 2))
		synctest.Wait()
		if j.First() != 0 {
			t.Fatalf("deleted early: %+v", j.Stats())
		}
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		if first := j.First(); first != 20 {
			t.Fatalf("first is %d after 70 minutes, want 20", first)
		}
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		if st := j.Stats(); st.First != 22 || st.Next != 22 || st.DeletedRecords != 22 || st.Segments != 1 {
			t.Fatalf("%+v", st)
		}
		j.Close()
		j, err = Open("/j", Options{Disk: mem})
		testkit.OK(t, err)
		defer j.Close()
		if j.Next() != 22 {
			t.Fatalf("the offset starts anew at %d", j.Next())
		}
	})
}

// ahead is a disk whose files were written by a clock that was ahead.
type ahead struct {
	disk.FS
	names map[string]time.Time
}

func (a ahead) List(dir string) ([]disk.Entry, error) {
	entries, err := a.FS.List(dir)
	for i := range entries {
		if at, ok := a.names[entries[i].Name]; ok {
			entries[i].ModTime = at
		}
	}
	return entries, err
}

// A segment that was written while the clock was ahead is not kept until that time,
// and those after it are not kept with it.
func TestRetainAgeAfterClockWasAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := Options{Disk: disktest.NewMem(), SegmentBytes: 600}
		j, err := Open("/j", o)
		testkit.OK(t, err)
		for i := range 5 {
			mustAppend(t, j, lines(4*i, 4))
			time.Sleep(10 * time.Minute)
		}
		testkit.OK(t, j.Close())
		year := time.Now().Add(365 * 24 * time.Hour)
		o.Disk = ahead{o.Disk, map[string]time.Time{segmentName(0, extSealed): year, segmentName(8, extSealed): year, segmentName(16, extOpen): year}}
		o.RetainAge = time.Hour
		for _, want := range []uint64{0, 8, 16} { // 50, 75 and 100 minutes after the first
			j, err := Open("/j", o)
			testkit.OK(t, err)
			synctest.Wait()
			if first := j.First(); first != want {
				t.Errorf("the oldest record is %d, want %d", first, want)
			}
			testkit.OK(t, j.Close())
			time.Sleep(25 * time.Minute)
		}
	})
}

// Reading by time reads the headers of large frames outside the range only.
func TestTimeRange(t *testing.T) {
	mem := disktest.NewMem()
	var read atomic.Int64
	j, err := Open("/j", Options{SegmentBytes: 1 << 20, Disk: &disktest.Faulty{FS: mem, Hook: func(op disktest.Op) disktest.Fault {
		if op.Kind == disktest.Read {
			read.Add(int64(op.Len))
		}
		return disktest.Fault{}
	}}})
	testkit.OK(t, err)
	defer j.Close()
	for i := range 60 {
		mustAppend(t, j, lines(i*1000, 1000)) // about 100 KB; record n has time n
	}
	for j.nextRetired() != nil { // sealing reads a segment too
		time.Sleep(time.Millisecond)
	}
	read.Store(0)
	r := j.NewReader(0)
	defer r.Close()
	r.SetTimeRange(30_500, 31_000)
	var got []uint64
	for {
		f, ok, err := r.TryNext()
		testkit.OK(t, err)
		if !ok {
			break
		}
		got = append(got, f.First)
	}
	if !slices.Equal(got, []uint64{30_000, 31_000}) || r.Offset() != 60_000 {
		t.Fatalf("frames %d, cursor %d", got, r.Offset())
	}
	if total := j.Stats().Bytes; read.Load() > total/10 {
		t.Fatalf("read %d of %d bytes", read.Load(), total)
	}
	r.SetTimeRange(math.MinInt64, math.MaxInt64)
	mustAppend(t, j, lines(60_000, 1))
	if f, ok, err := r.TryNext(); !ok || err != nil || f.First != 60_000 {
		t.Fatal(f, ok, err)
	}
}

// A read error is returned twice, then what cannot be read becomes a Gap.
func TestReadErrors(t *testing.T) {
	mem := memJournal(t, 2, 4, 3)
	var bad atomic.Bool
	j, err := Open("/j", Options{Disk: &disktest.Faulty{FS: mem, Hook: func(op disktest.Op) disktest.Fault {
		if bad.Load() && op.Name == seg1 && (op.Kind == disktest.Read || op.Kind == disktest.Open) {
			return disktest.Fault{Err: os.ErrPermission}
		}
		return disktest.Fault{}
	}}})
	testkit.OK(t, err)
	defer j.Close()
	bad.Store(true)
	r := j.NewReader(0)
	defer r.Close()
	var events []string
	for len(events) < 100 {
		f, ok, err := r.TryNext()
		var gap *Gap
		switch {
		case errors.As(err, &gap):
			events = append(events, fmt.Sprint("gap ", gap.From, "-", gap.To))
		case err != nil:
			events = append(events, "error")
		case ok && f.First%8 == 0:
			events = append(events, fmt.Sprint("at ", f.First))
		}
		if !ok && err == nil {
			break
		}
	}
	if want := []string{"at 0", "error", "error", "gap 8-16", "at 16"}; !slices.Equal(events, want) {
		t.Fatalf("%q, want %q", events, want)
	}
}

// 80 sealed segments open by the manifest and their headers alone.
func TestOpenReadsHeadersOnly(t *testing.T) {
	mem := memJournal(t, 80, 4, 1)
	var read atomic.Int64
	j, err := Open("/j", Options{Disk: &disktest.Faulty{FS: mem, Hook: func(op disktest.Op) disktest.Fault {
		if op.Kind == disktest.Read {
			read.Add(int64(op.Len))
		}
		return disktest.Fault{}
	}}})
	testkit.OK(t, err)
	defer j.Close()
	if n := read.Load(); n > 82*(segmentHeaderSize+80)+2000 {
		t.Fatalf("Open read %d bytes", n)
	}
	if n := j.Recovery().Scanned; n > 1000 {
		t.Fatalf("Open scanned %d bytes", n)
	}
}

// An Append without rivals is one write in the caller's goroutine, and a fsync there too when
// it is asked for. After the fsync it compares what was written since the last one.
func TestAppendIsOneWrite(t *testing.T) {
	var mu sync.Mutex
	var ops []string
	goroutine := func() string {
		b := make([]byte, 64)
		return strings.Fields(string(b[:runtime.Stack(b, false)]))[1]
	}
	caller := goroutine()
	j, err := Open("/j", Options{Disk: &disktest.Faulty{FS: disktest.NewMem(), Hook: func(op disktest.Op) disktest.Fault {
		mu.Lock()
		defer mu.Unlock()
		if by := goroutine(); isSegment(op.Name) && (op.Kind != disktest.Read || by == caller) { // maintenance looks at files too
			ops = append(ops, string(op.Kind)+" by "+by)
		}
		return disktest.Fault{}
	}}})
	testkit.OK(t, err)
	defer j.Close()
	b := lines(0, 3)
	b.Synced = true
	mustAppend(t, j, b) // makes the segment
	for _, want := range [][]string{{"write"}, {"write", "sync", "read"}} {
		mu.Lock()
		ops = nil
		mu.Unlock()
		b.Synced = slices.Contains(want, "sync")
		mustAppend(t, j, b)
		for i := range want {
			want[i] += " by " + caller
		}
		mu.Lock()
		if !slices.Equal(ops, want) {
			t.Errorf("operations %q, want %q", ops, want)
		}
		mu.Unlock()
	}
}
