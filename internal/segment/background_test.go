package segment

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/internal/direct"
	"github.com/rollway/rollway/internal/disk"
)

// syncs stands for disk.SyncData: the errors come one after the other, then it is
// as it is.
type syncs struct {
	takes time.Duration

	mu    sync.Mutex
	errs  []error
	files []*os.File // that it was called with
}

func (s *syncs) sync(f *os.File) error {
	s.mu.Lock()
	s.files = append(s.files, f)
	var err error
	if len(s.errs) > 0 {
		err, s.errs = s.errs[0], s.errs[1:]
	}
	s.mu.Unlock()
	time.Sleep(s.takes)
	if err != nil {
		return err
	}
	return disk.SyncData(f)
}

// calls returns how often it was called with f.
func (s *syncs) calls(f *os.File) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.files {
		if g == f {
			n++
		}
	}
	return n
}

func give(t *testing.T, l *Log, line string) {
	t.Helper()
	if n, err := l.Write([]byte(line)); n != len(line) || err != nil {
		t.Fatalf("Write = %d, %v", n, err)
	}
}

// A file whose fsync in the background has failed is left for a new one, and no
// fsync of it is tried again, which could succeed though bytes are lost. Sync
// tells of it once. Where none of it ever reached the disk for sure, the new file
// is in the failover.
func TestSyncIntervalFails(t *testing.T) {
	for name, c := range map[string]struct {
		errs []error
		away bool
	}{
		"the first": {[]error{syscall.EIO}, true},
		"a later":   {[]error{nil, syscall.EIO}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir, second := t.TempDir(), t.TempDir()
			path := filepath.Join(dir, "log")
			synctest.Test(t, func(t *testing.T) {
				var heard notices
				s := &syncs{errs: c.errs}
				l := openLog(t, path, Options{Sync: Interval, SyncEvery: time.Second, StallAfter: time.Hour, HomeAfter: time.Hour, Failover: second, Notice: heard.add})
				l.syncData = s.sync
				old := l.cur.f
				for range c.errs {
					give(t, l, "one\n")
					time.Sleep(1500 * time.Millisecond)
				}
				if !strings.Contains(heard.String(), "sync: input/output error") {
					t.Errorf("heard %s", heard.String())
				}
				give(t, l, "two\n")
				give(t, l, "three\n") // to the same new file
				if err := l.Sync(); !errors.Is(err, syscall.EIO) {
					t.Errorf("Sync = %v", err)
				}
				if err := l.Sync(); err != nil {
					t.Errorf("the next Sync = %v", err)
				}
				st := l.Stats()
				if away := st.Path == filepath.Join(second, "log"); away != c.away || !away && st.Path != path || st.Sealed != 1 || st.SyncErrors != 1 {
					t.Errorf("Stats %+v", st)
				}
				left := rotatedFiles(t, path)
				if got := readAll(t, append(left, st.Path)...); got != strings.Repeat("one\n", len(c.errs))+"two\nthree\n" || len(left) != 1 {
					t.Errorf("%d files, %q", len(left), got)
				}
				if err := l.Close(); err != nil {
					t.Errorf("Close = %v", err)
				}
				if n := s.calls(old); n != len(c.errs) {
					t.Errorf("%d calls of fsync for the file that failed, want %d", n, len(c.errs))
				}
			})
		})
	}
}

// Sync waits for the fsync of files that are done, also for the one under way, and
// returns what it met.
func TestSyncWaitsForFilesThatAreDone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	synctest.Test(t, func(t *testing.T) {
		s := &syncs{takes: time.Second, errs: []error{syscall.EIO}}
		l := openLog(t, path, Options{MaxSize: 10_000})
		l.syncData = s.sync
		line := strings.Repeat("x", 999) + "\n"
		first := l.cur
		for first == l.cur {
			give(t, l, line)
		}
		time.Sleep(time.Second / 2) // within that fsync
		began := time.Now()
		if err := l.Sync(); !errors.Is(err, syscall.EIO) {
			t.Errorf("Sync = %v", err)
		}
		if took := time.Since(began); took != 1500*time.Millisecond { // the rest of one, and its own
			t.Errorf("Sync took %v", took)
		}
		if n := s.calls(first.f); n != 1 {
			t.Errorf("%d calls of fsync for the first file", n)
		}
		if err := l.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
}

// What a file took before a write to it failed is forced to the disk by the next
// Sync, or that says why it cannot.
func TestSyncOfAFileThatWasLeft(t *testing.T) {
	for _, fails := range []error{nil, syscall.EIO} {
		path := filepath.Join(t.TempDir(), "log")
		s := new(syncs)
		l := openLog(t, path, Options{})
		l.syncData = s.sync
		old := l.cur.f
		give(t, l, "one\n")
		l.judge(syscall.EIO)
		give(t, l, "two\n")
		s.mu.Lock()
		s.errs = []error{fails}
		s.mu.Unlock()
		if err := l.Sync(); !errors.Is(err, fails) || fails == nil && err != nil {
			t.Errorf("Sync = %v, want %v", err, fails)
		}
		if n := s.calls(old); n != 1 {
			t.Errorf("%d calls of fsync for the file that was left", n)
		}
		if st := l.Stats(); st.Sealed != 1 || readAll(t, append(rotatedFiles(t, path), path)...) != "one\ntwo\n" {
			t.Errorf("Stats %+v", st)
		}
	}
}

// No file gets longer than MaxSize because the one before it has failed: there may
// be something in the other folder already.
func TestMaxSizeInTheFailover(t *testing.T) {
	path, second := filepath.Join(t.TempDir(), "log"), t.TempDir()
	other := filepath.Join(second, "log")
	line := strings.Repeat("x", 999) + "\n"
	const maxSize = 20_000
	if err := os.WriteFile(other, []byte(strings.Repeat(line, 19)), 0o600); err != nil {
		t.Fatal(err)
	}
	l := openLog(t, path, Options{MaxSize: maxSize, Failover: second, HomeAfter: time.Hour})
	l.judge(syscall.EIO) // before it took anything
	give(t, l, strings.Repeat(line, 5))
	if got := l.Path(); got != other {
		t.Fatalf("the lines go to %s", got)
	}
	names := append(rotatedFiles(t, other), other)
	for _, name := range names {
		if n := len(readAll(t, name)); n > maxSize {
			t.Errorf("%s has %d bytes", name, n)
		}
	}
	if n := len(readAll(t, names...)); n != 24*len(line) {
		t.Errorf("%d bytes in %d files", n, len(names))
	}
}

// Close after an fsync in the background has failed returns that. It is not tried
// again, not even where lines came while it was under way.
func TestCloseAfterAFailedSync(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	synctest.Test(t, func(t *testing.T) {
		s := &syncs{errs: []error{syscall.EIO}, takes: time.Second / 2}
		l := openLog(t, path, Options{Sync: Interval, SyncEvery: time.Second, StallAfter: time.Hour})
		l.syncData = s.sync
		file := l.cur.f
		give(t, l, "one\n")
		time.Sleep(1200 * time.Millisecond) // within the fsync
		give(t, l, "two\n")
		time.Sleep(5 * time.Second)
		if err := l.Close(); !errors.Is(err, syscall.EIO) {
			t.Errorf("Close = %v", err)
		}
		if n := s.calls(file); n != 1 {
			t.Errorf("%d calls of fsync", n)
		}
	})
}

// An fsync that fails after its file was rotated is no reason to leave the next
// one.
func TestSyncFailsAfterARotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	synctest.Test(t, func(t *testing.T) {
		s := &syncs{errs: []error{syscall.EIO}, takes: time.Second}
		l := openLog(t, path, Options{Sync: Interval, SyncEvery: time.Minute, StallAfter: time.Hour, MaxSize: 20_000})
		l.syncData = s.sync
		give(t, l, "one\n")
		time.Sleep(time.Minute + time.Second/2) // within the fsync
		line := strings.Repeat("x", 5999) + "\n"
		give(t, l, line)
		give(t, l, line)
		time.Sleep(10 * time.Second) // it has failed
		give(t, l, "last\n")
		if st := l.Stats(); st.Sealed != 0 || st.Rotations != 1 || st.SyncErrors != 1 {
			t.Errorf("Stats %+v", st)
		}
		if err := l.Sync(); !errors.Is(err, syscall.EIO) {
			t.Errorf("Sync = %v", err)
		}
	})
}

// Buffers that were written where they are, and are given again because their
// fsync failed, are the lines that they were.
func TestSyncEachFailsAfterAWriteInPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	s := &syncs{errs: []error{nil, syscall.EIO}}
	l, err := Open(path, Options{Mode: direct.Direct, Sync: Each, Perm: 0o600, CheckEvery: -1})
	if err != nil {
		t.Fatal(err)
	}
	l.syncData = s.sync
	give(t, l, "first\n")
	const size, count = 1<<20 + 77, 3
	set, err := direct.NewMemorySet(count, size)
	if err != nil {
		t.Fatal(err)
	}
	var bufs [][]byte
	want := "first\n"
	for i := range count {
		b := set.Bytes(i)
		for k := range b {
			b[k] = byte('a' + i)
		}
		b[len(b)-1] = '\n'
		bufs, want = append(bufs, b), want+string(b)
	}
	if n, err := l.WriteBuffers(bufs); n != 0 || !errors.Is(err, syscall.EIO) {
		t.Fatalf("WriteBuffers = %d, %v", n, err)
	}
	if n, err := l.WriteBuffers(bufs); n != count*size || err != nil {
		t.Fatalf("WriteBuffers again = %d, %v", n, err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	got := ""
	for line := range strings.Lines(readAll(t, append(rotatedFiles(t, path), path)...)) {
		if text := strings.TrimRight(line, " \n"); text != "" {
			got += text + "\n"
		}
	}
	if got != want {
		t.Errorf("%d bytes in the files, want %d", len(got), len(want))
	}
	if err := set.Free(); err != nil {
		t.Error(err)
	}
}

// Of a framed file that has failed, a part of a batch may be there that comes
// again elsewhere. If no end can be written over it, Notice is told.
func TestFailedFileWithoutAnEnd(t *testing.T) {
	var heard notices
	l := openLog(t, filepath.Join(t.TempDir(), "log"), Options{Framed: true, Notice: heard.add})
	if n, err := l.Write([]byte("one\n")); n != 4 || err != nil {
		t.Fatalf("Write = %d, %v", n, err)
	}
	l.bad = syscall.EIO
	l.cur.f.Close() // whatever is written to it fails
	if n, err := l.Write([]byte("two\n")); n != 4 || err != nil {
		t.Errorf("Write = %d, %v", n, err)
	}
	if s := heard.String(); !strings.Contains(s, "are written again elsewhere") {
		t.Errorf("heard %s", s)
	}
	if err := l.Close(); !errors.Is(err, os.ErrClosed) { // the old file's
		t.Errorf("Close = %v", err)
	}
}

// Sync beside an fsync in the background waits for that: of two at once the system
// tells one alone what it lost. Nor does a later Sync call it again and find all
// well.
func TestSyncBesideTheOneInTheBackground(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	synctest.Test(t, func(t *testing.T) {
		s := &syncs{takes: time.Second, errs: []error{syscall.EIO}}
		l := openLog(t, path, Options{Sync: Interval, SyncEvery: time.Minute, StallAfter: time.Hour})
		l.syncData = s.sync
		old := l.cur.f
		give(t, l, "one\n")
		time.Sleep(time.Minute + time.Second/2) // within the fsync
		for range 3 {
			if err := l.Sync(); !errors.Is(err, syscall.EIO) {
				t.Errorf("Sync = %v", err)
			}
			synctest.Wait()
		}
		if n := s.calls(old); n != 1 {
			t.Errorf("%d calls of fsync", n)
		}
		if err := l.Close(); err != nil { // it was told
			t.Errorf("Close = %v", err)
		}
	})
}
