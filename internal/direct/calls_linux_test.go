package direct

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rollway/rollway/internal/testkit"
)

// writeCalls returns how many calls of the system f makes that write.
func writeCalls(t *testing.T, f func()) (n int) {
	t.Helper()
	runtime.LockOSThread() // its calls are counted
	defer runtime.UnlockOSThread()
	count := func() (n int) {
		data, err := os.ReadFile("/proc/thread-self/io")
		if err != nil {
			testkit.Missing(t, "a kernel that counts the calls of a thread: "+err.Error())
		}
		for line := range strings.Lines(string(data)) {
			if k, err := fmt.Sscanf(line, "syscw: %d", &n); k == 1 && err == nil {
				return n
			}
		}
		t.Fatalf("no syscw in %q", data)
		return 0
	}
	before := count()
	f()
	return count() - before
}

// lineBuffers returns that many aligned buffers of size bytes, each one line.
func lineBuffers(t *testing.T, count, size int) (bufs [][]byte) {
	t.Helper()
	set, err := NewMemorySet(count, size)
	testkit.OK(t, err)
	t.Cleanup(func() {
		if err := set.Free(); err != nil {
			t.Error(err)
		}
	})
	for i := range count {
		b := set.Bytes(i)
		for j := range b {
			b[j] = byte('a' + i%26)
		}
		b[len(b)-1] = '\n'
		bufs = append(bufs, b)
	}
	return bufs
}

// No call of the system gets more than Chunk bytes, nor more buffers than the
// system takes, however much there is to write.
func TestCallsAreSplit(t *testing.T) {
	for _, c := range []struct {
		chunk, count, size int
		calls              int
	}{
		{1 << 20, 1, 5 << 20, 5},
		{1 << 20, 3, 2 << 20, 6},
		{1 << 20, 10, 512 << 10, 5},
		{8 << 20, 10, 512 << 10, 1},
		{64 << 20, 3000, Align, 3}, // 1024 in a call
		{Align, 20, Align, 20},
	} {
		for _, mode := range []Mode{Direct, Buffered} {
			t.Run(fmt.Sprintf("%v, %d of %d by %d", mode, c.count, c.size, c.chunk), func(t *testing.T) {
				o := Options{Mode: mode, chunk: c.chunk, inPlace: Align}
				bufs := lineBuffers(t, c.count, c.size)
				want := bytes.Join(bufs, nil)
				check := func(path string, calls int, n int64, err error) {
					t.Helper()
					if n != int64(len(want)) || err != nil {
						t.Errorf("%d of %d bytes, %v", n, len(want), err)
					}
					if calls != c.calls {
						t.Errorf("%d calls, want %d", calls, c.calls)
					}
					if got, err := os.ReadFile(path); !bytes.Equal(got, want) || err != nil {
						t.Errorf("the file has %d bytes, want the %d given, %v", len(got), len(want), err)
					}
				}
				var n int64
				var err error

				path := filepath.Join(t.TempDir(), "tail")
				tail, f := openTail(t, path, o)
				calls := writeCalls(t, func() { n, err = tail.WriteBuffers(bufs) })
				closeTail(t, tail, f)
				check(path, calls, n, err)
			})
		}
	}
}

// While a file is written Direct, 64 MiB ahead of its end are allocated already,
// or what Reserve says. Other modes leave that to the system.
func TestReserve(t *testing.T) {
	dir := t.TempDir()
	probe, err := os.Create(filepath.Join(dir, "probe"))
	testkit.OK(t, err)
	if err := unix.Fallocate(int(probe.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, 80<<20); err != nil {
		testkit.Missing(t, "a file system that can allocate 80 MiB ahead: "+err.Error())
	}
	if err := probe.Truncate(0); err != nil {
		t.Error(err)
	}
	probe.Close()
	for _, c := range []struct {
		options Options
		ahead   int64
	}{
		{Options{Mode: Direct}, 64 << 20},
		{Options{Mode: Direct, Reserve: 1 << 20}, 1 << 20},
		{Options{Mode: Direct, Reserve: -1}, 0},
		{Options{Mode: Buffered}, 0},
		{Options{Mode: Buffered, Reserve: 1 << 20}, 1 << 20},
	} {
		path := filepath.Join(dir, "log")
		tail, f := openTail(t, path, c.options)
		blocks := func() int64 {
			t.Helper()
			info, err := f.Stat()
			testkit.OK(t, err)
			return info.Sys().(*syscall.Stat_t).Blocks * 512
		}
		piece := lineBuffers(t, 1, 3<<20)[0]
		for i := range 3 {
			if _, err := tail.WriteBuffers([][]byte{piece}); err != nil {
				t.Fatal(err)
			}
			got := blocks()
			// The first write allocates ahead of its own end, later ones use that up.
			if most := tail.Size() + c.ahead + slack; got > most {
				t.Errorf("%+v: %d bytes take %d on the disk, want no more than %d", c.options, tail.Size(), got, most)
			}
			if least := tail.Size() + c.ahead; i == 0 && c.ahead > 0 && got < least {
				t.Errorf("%+v: %d bytes take %d on the disk, want %d", c.options, tail.Size(), got, least)
			}
			if c.options.Reserve > 0 && got < tail.Size()+c.ahead {
				t.Errorf("%+v: %d bytes take %d on the disk: less than %d ahead", c.options, tail.Size(), got, c.ahead)
			}
		}
		closeTail(t, tail, f)
		if info, err := os.Stat(path); err != nil || info.Sys().(*syscall.Stat_t).Blocks*512 > info.Size()+slack {
			t.Errorf("%+v: %d bytes take %d blocks after Close, %v", c.options, info.Size(), info.Sys().(*syscall.Stat_t).Blocks, err)
		}
		testkit.OK(t, os.Remove(path))
	}
}

// Close asks nothing of the system that could fail: who closes the file next
// would tell of an error though every byte is there. Restore is for who goes on.
func TestCloseLeavesTheMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	tail, f := openTail(t, path, Options{Mode: Direct, Reserve: -1})
	if _, err := tail.Write([]byte("a line\n")); err != nil {
		t.Fatal(err)
	}
	bypasses := func() bool {
		flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
		testkit.OK(t, err)
		return flags&unix.O_DIRECT != 0
	}
	if !bypasses() {
		t.Error("the file is not switched to direct I/O")
	}
	if err := tail.Restore(); err != nil || bypasses() {
		t.Errorf("Restore = %v, and direct I/O is %v", err, bypasses())
	}
	testkit.OK(t, f.Close())
	if err := tail.Close(); err != nil {
		t.Errorf("Close asked for %v", err)
	}
}
