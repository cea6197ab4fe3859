package direct

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/promtext"
	"github.com/rollway/rollway/internal/smalldisk"
	"github.com/rollway/rollway/internal/testkit"
	"github.com/rollway/rollway/slab"
)

// TestHungDisk: the disk hangs for 8 s under the headline load, 1000 records of
// 300 KiB a second past the page cache, with the headline's slabs and a failover that
// works. Nothing is dropped, each record is in one of the two files, and the disk is
// used again once it answers.
//
// Disk and failover are in memory, as the machine's disk has pauses of its own. A run
// in which the failover did not work, as a Write of it took 50 ms or more, is made
// again.
func TestHungDisk(t *testing.T) {
	testkit.Nightly(t, testkit.Bench, "it takes half a minute and 6 GB of memory")
	testkit.NoRace(t, "it is a load of 300 MB a second")
	const memory = "/dev/shm"
	var room unix.Statfs_t
	if err := unix.Statfs(memory, &room); err != nil || smalldisk.Dir() == "" && int64(room.Bavail)*room.Bsize < 6<<30 {
		testkit.Missing(t, "6 GB of room in "+memory)
	}
	t.Setenv("TMPDIR", memory)
	disk := smalldisk.Ext4Of(t, 3<<30)
	if disk == "" {
		return
	}
	for name, policy := range map[string]slab.Policy{"bounded": slab.Bounded, "drop": slab.Drop} {
		t.Run(name, func(t *testing.T) {
			for try := range 3 {
				if slowest := hang(t, disk, policy, try); slowest < 50*time.Millisecond {
					return
				} else {
					t.Logf("a Write of the failover took %v: again", slowest)
				}
			}
			t.Error("the failover did not work in any of 3 runs: give the machine less to do")
		})
	}
}

// hang has the disk hang between two calls that are more than 8 s apart. It returns
// the longest Write of the failover; what that did not cause is an error.
func hang(t *testing.T, disk string, policy slab.Policy, try int) (slowest time.Duration) {
	spare := t.TempDir()
	paths := []string{filepath.Join(disk, fmt.Sprint(policy, try)), filepath.Join(spare, "log")}
	var files []*timedFile
	for i, mode := range []file.Mode{file.Direct, file.Buffered} {
		f, err := file.Open(paths[i], file.Options{Mode: mode})
		if err != nil {
			t.Fatal(err)
		}
		defer os.Remove(paths[i])
		files = append(files, &timedFile{File: f})
	}
	s := DefaultHeadline()
	w, err := slab.New(files[0], slab.Options{
		Shards: s.Shards, SlabSize: s.Buffer / s.Shards, SlabCount: s.Shards * s.Sets, FlushInterval: s.Flush,
		Full: policy, Failover: files[1], CloseTimeout: time.Minute, NoNotice: true, OnError: func(err error) { t.Log(err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	const second = time.Second
	l := headline(s.Threads, 11*second)
	given := l.goroutines * l.each
	h := &hanging{w: w, freeze: uint64(second / period), thaw: uint64(9500 * time.Millisecond / period)}
	var hung time.Duration
	var switches sync.WaitGroup
	h.frozen, h.thawed = make(chan struct{}), make(chan struct{})
	switches.Go(func() {
		<-h.frozen
		freeze(t, disk)
		begin := time.Now()
		<-h.thawed
		thaw(t, disk)
		hung = time.Since(begin)
	})
	producers := make([]producer, l.goroutines)
	var done sync.WaitGroup
	start := time.Now()
	for i := range producers {
		p := &producers[i]
		p.taken, p.record = make([]bool, l.each), newRecord(l.size)
		done.Go(func() {
			p.log(h, l, i, start.Add(l.period*time.Duration(i)/time.Duration(l.goroutines)))
		})
	}
	done.Wait()
	switches.Wait()
	if err := w.Close(); err != nil {
		t.Error("close:", err)
	}
	stats := w.Stats()
	var calls promtext.Histogram
	for i := range producers {
		calls.Add(&producers[i].call)
	}
	t.Logf("hung for %v; %d records, %d by the failover, dropped %d; calls p99 %v, longest %v",
		hung, stats.Accepted, stats.FailedOver, stats.Dropped.Total(), calls.Quantile(0.99), calls.Max())
	if slowest = files[1].writes.Max(); slowest >= 50*time.Millisecond {
		return slowest
	}
	if hung < 8*second {
		t.Errorf("the disk hung for %v, want 8 s", hung)
	}
	if n := stats.Dropped.Total(); n > 0 {
		t.Errorf("%d records dropped: %+v", n, stats.Dropped)
	}
	if stats.Accepted != uint64(given) || stats.Accepted != stats.Written+stats.Dropped.Total()+stats.Pending {
		t.Errorf("of %d records %d accepted, %d written, %d dropped, %d pending", given, stats.Accepted, stats.Written, stats.Dropped.Total(), stats.Pending)
	}
	// It took over within MaxWait, 100 ms, and had the records of the rest of the 8 s.
	if want := uint64(7 * second / period); stats.FailedOver < want {
		t.Errorf("%d records by the failover, want %d at least", stats.FailedOver, want)
	}
	if stats.FailingOver {
		t.Error("the failover is in use, though the disk is back")
	}
	a := newAudit(l.goroutines, parseRecord(l.size))
	for _, path := range paths {
		if err := readFile(a, path); err != nil {
			t.Fatal(err)
		}
	}
	// Those of the call that hung may be in both files: a quarter of the slabs at most.
	held := s.Buffer * s.Sets / 4 / l.size
	if a.Found != given || a.Torn > 0 || a.Repeated > held {
		t.Errorf("of %d records %d found, %d torn, %d in both files, want %d of these at most", given, a.Found, a.Torn, a.Repeated, held)
	}
	return slowest
}

// hanging is a Logger that tells when so many calls have begun.
type hanging struct {
	w              *slab.Writer
	calls          atomic.Uint64
	freeze, thaw   uint64 // calls
	frozen, thawed chan struct{}
}

func (h *hanging) LogBytes(p []byte) error {
	switch h.calls.Add(1) {
	case h.freeze:
		close(h.frozen)
	case h.thaw:
		close(h.thawed)
	}
	_, err := h.w.Write(p[:len(p)+1])
	return err
}

func (h *hanging) Close() error     { return h.w.Close() }
func (h *hanging) Figures() Figures { return Figures{} }

// freeze makes every write to the file system of Ext4 hang until thaw or the end of the
// test.
func freeze(t testing.TB, disk string) {
	t.Helper()
	const fifreeze = 0xC0045877 // FIFREEZE
	if errno := fileSystem(disk, fifreeze); errno != 0 {
		t.Fatalf("freeze %s: %v", disk, errno)
	}
	t.Cleanup(func() { thaw(t, disk) })
}

// thaw ends freeze. It may be called again.
func thaw(t testing.TB, disk string) {
	t.Helper()
	const fithaw = 0xC0045878 // FITHAW
	if errno := fileSystem(disk, fithaw); errno != 0 && errno != syscall.EINVAL {
		t.Errorf("thaw %s: %v", disk, errno)
	}
}

func fileSystem(disk string, request uintptr) syscall.Errno {
	f, err := os.Open(disk)
	if err != nil {
		return syscall.ENOENT
	}
	defer f.Close()
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), request, 0)
	return errno
}
