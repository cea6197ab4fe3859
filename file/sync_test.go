//go:build unix

package file_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/testkit"
)

// syncs replaces fsync: the errors come one after the other, then it is as it
// is.
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

// inBubble runs a test in every mode and in virtual time, in a folder.
func inBubble(t *testing.T, test func(t *testing.T, mode file.Mode, dir string)) {
	eachMode(t, func(t *testing.T, mode file.Mode) {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) { test(t, mode, dir) })
	})
}

// all returns the contents of the series at path.
func all(t *testing.T, path string) string {
	t.Helper()
	_, contents := parts(t, path, nil)
	return strings.Join(contents, "")
}

// A file whose fsync in the background has failed is left for a new one, and no
// fsync of it is tried again, which could succeed though bytes are lost. Sync
// tells of it once. Where none of it ever reached the disk for sure, the new file
// is in the failover.
func TestSyncIntervalFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		errs []error
		away bool
	}{
		"the first": {[]error{syscall.EIO}, true},
		"a later":   {[]error{nil, syscall.EIO}, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, mode file.Mode, dir string) {
				path, second := filepath.Join(dir, "log"), filepath.Join(dir, "second")
				testkit.OK(t, os.Mkdir(second, 0o700))
				var heard told
				s := &syncs{errs: c.errs}
				f := open(t, path, file.Options{Mode: mode, Sync: file.SyncInterval, Failover: second, OnError: heard.add})
				f.SetSync(s.sync)
				old := f.Current()
				for range c.errs {
					write(t, f, "one\n")
					time.Sleep(1500 * time.Millisecond)
				}
				f.Told()
				if !strings.Contains(heard.String(), "input/output error") {
					t.Errorf("heard %s", heard.String())
				}
				write(t, f, "two\n")
				write(t, f, "three\n") // to the same new file
				if err := f.Sync(); !errors.Is(err, syscall.EIO) {
					t.Errorf("Sync = %v", err)
				}
				if err := f.Sync(); err != nil {
					t.Errorf("the next Sync = %v", err)
				}
				st := f.Stats()
				if away := st.Path == filepath.Join(second, "log"); away != c.away || !away && st.Path != path || st.Abandoned != 1 {
					t.Errorf("Stats %+v", st)
				}
				if got := all(t, path) + map[bool]string{true: all(t, st.Path)}[c.away]; got != strings.Repeat("one\n", len(c.errs))+"two\nthree\n" {
					t.Errorf("the files hold %q", got)
				}
				if err := f.Close(); err != nil {
					t.Errorf("Close = %v", err)
				}
				if n := s.calls(old); n != len(c.errs) {
					t.Errorf("%d calls of fsync for the file that failed, want %d", n, len(c.errs))
				}
				ledger(f).CheckSettled(t, len(c.errs)+2, len(c.errs)+2)
			})
		})
	}
}

// With SyncEachWrite the lines of a Write whose fsync fails are taken back and
// written to another file: the caller's Write succeeds.
func TestSyncEachWriteFails(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode file.Mode) {
		path := filepath.Join(t.TempDir(), "log")
		var heard told
		s := &syncs{errs: []error{nil, syscall.EIO}}
		f := open(t, path, file.Options{Mode: mode, Sync: file.SyncEachWrite, OnError: heard.add})
		f.SetSync(s.sync)
		old := f.Current()
		write(t, f, "first\n")
		bufs := largeBuffers(t, 3, 1<<20+77)
		text := string(bytes.Join(bufs, nil))
		if n, err := writeBuffers(f, bufs); int(n) != len(text) || err != nil {
			t.Fatalf("WriteBuffers = %d, %v", n, err)
		}
		if got := bytes.Join(bufs, nil); string(got) != text {
			t.Error("the buffers have changed")
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		_, contents := parts(t, path, nil)
		if len(contents) != 2 || contents[0] != "first\n" || withoutPadding(contents[1]) != text {
			t.Errorf("%d files", len(contents))
		}
		if n := s.calls(old); n != 2 {
			t.Errorf("%d calls of fsync for the file that failed", n)
		}
		f.Told()
		if st := f.Stats(); st.Abandoned != 1 || st.Failing || !strings.Contains(heard.String(), "left for another file") {
			t.Errorf("Stats %+v, heard %s", st, heard.String())
		}
		lines := 1 + strings.Count(text, "\n")
		ledger(f).CheckSettled(t, lines, lines)
	})
}

// A file whose fsync finds the disk full is left as well: the system may have
// dropped what it could not write.
func TestSyncFindsTheDiskFull(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode file.Mode) {
		path := filepath.Join(t.TempDir(), "log")
		s := &syncs{errs: []error{nil, syscall.ENOSPC}}
		f := open(t, path, file.Options{Mode: mode, Sync: file.SyncEachWrite})
		f.SetSync(s.sync)
		old := f.Current()
		write(t, f, "one\n")
		write(t, f, "two\n")
		if _, contents := parts(t, path, nil); strings.Join(contents, "|") != "one\n|two\n" || s.calls(old) != 2 || f.Stats().Abandoned != 1 {
			t.Errorf("the files hold %q, Stats %+v", contents, f.Stats())
		}
		ledger(f).CheckSettled(t, 2, 2)
	})
}

// Where no fsync succeeds, no line is taken, and no file is left for each
// try.
func TestSyncEachWriteNeverWorks(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode file.Mode) {
		path := filepath.Join(t.TempDir(), "log")
		f := open(t, path, file.Options{Mode: mode, Sync: file.SyncEachWrite})
		f.SetSync(func(*os.File) error { return syscall.EIO })
		for range 5 {
			if n, err := f.Write([]byte("line\n")); n != 0 || !errors.Is(err, syscall.EIO) {
				t.Errorf("Write = %d, %v", n, err)
			}
		}
		if names := glob(t, path+"*"); len(names) > 1 || all(t, path) != "" {
			t.Errorf("left: %v", names)
		}
		if s := f.Stats(); !s.Failing || s.Returned != 5 || s.Written != 0 {
			t.Errorf("Stats %+v", s)
		}
		f.SetSync(disk.SyncData)
		write(t, f, "line\n")
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if got := all(t, path); got != "line\n" {
			t.Errorf("the files hold %q", got)
		}
		ledger(f).CheckSettled(t, 1, 1)
	})
}

// What a Sync could not promise it says, and again as long as the file is in use.
// Neither it nor Close calls fsync again; the next Write goes to a new file.
func TestFailedSyncSticks(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode file.Mode) {
		path := filepath.Join(t.TempDir(), "log")
		s := &syncs{errs: []error{syscall.EIO}}
		f := open(t, path, file.Options{Mode: mode})
		f.SetSync(s.sync)
		old := f.Current()
		write(t, f, "one\n")
		for range 2 {
			if err := f.Sync(); !errors.Is(err, syscall.EIO) {
				t.Errorf("Sync = %v", err)
			}
		}
		if n := s.calls(old); n != 1 {
			t.Errorf("%d calls of fsync", n)
		}
		write(t, f, "two\n")
		if err := f.Sync(); err != nil {
			t.Errorf("Sync of the new file = %v", err)
		}
		if _, contents := parts(t, path, nil); strings.Join(contents, "|") != "one\n|two\n" {
			t.Errorf("the files hold %q", contents)
		}
		s.mu.Lock()
		s.errs = []error{syscall.EIO}
		s.mu.Unlock()
		if err := f.Sync(); !errors.Is(err, syscall.EIO) {
			t.Errorf("Sync = %v", err)
		}
		if err := f.Reopen(); err != nil { // this time by hand
			t.Error(err)
		}
		if err := f.Sync(); err != nil {
			t.Errorf("Sync after Reopen = %v", err)
		}
		s.mu.Lock()
		s.errs = []error{syscall.EIO}
		s.mu.Unlock()
		f.Sync()
		if err := f.Close(); !errors.Is(err, syscall.EIO) {
			t.Errorf("Close = %v", err)
		}
		ledger(f).CheckSettled(t, 2, 2)
	})
}

// Sync forces out the files that were rotated, waits for the fsync of one that is
// under way, and returns what that met.
func TestSyncWaitsForRotatedFiles(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, mode file.Mode, dir string) {
		path := filepath.Join(dir, "log")
		s := &syncs{takes: time.Second, errs: []error{syscall.EIO}}
		f := open(t, path, file.Options{Mode: mode, Sync: file.SyncInterval, SyncEvery: time.Hour})
		f.SetSync(s.sync)
		first := f.Current()
		write(t, f, "one\n")
		testkit.OK(t, f.Rotate())
		time.Sleep(time.Second / 2) // within that fsync
		write(t, f, "two\n")
		began := time.Now()
		if err := f.Sync(); !errors.Is(err, syscall.EIO) {
			t.Errorf("Sync = %v", err)
		}
		if took := time.Since(began); took != 1500*time.Millisecond { // the rest of one, and its own
			t.Errorf("Sync took %v", took)
		}
		if n := s.calls(first); n != 1 {
			t.Errorf("%d calls of fsync for the first file", n)
		}
		if err := f.Close(); err != nil { // it was told
			t.Errorf("Close = %v", err)
		}
		ledger(f).CheckSettled(t, 2, 2)
	})
}

// What a file took before a write to it failed is forced to the disk by the next
// Sync, or that says why it cannot.
func TestSyncOfAFileThatWasLeft(t *testing.T) {
	t.Parallel()
	for _, fails := range []error{nil, syscall.EIO} {
		eachMode(t, func(t *testing.T, mode file.Mode) {
			path := filepath.Join(t.TempDir(), "log")
			s := &syncs{errs: []error{nil, fails}} // the new file's comes first
			f := open(t, path, file.Options{Mode: mode})
			f.SetSync(s.sync)
			write(t, f, "one\n")
			f.FailWith(syscall.EIO)
			write(t, f, "two\n")
			if err := f.Sync(); !errors.Is(err, fails) || fails == nil && err != nil {
				t.Errorf("Sync = %v, want %v", err, fails)
			}
			f.Told()
			if st := f.Stats(); st.Abandoned != 1 || st.Syncs != 2 || all(t, path) != "one\ntwo\n" {
				t.Errorf("Stats %+v", st)
			}
			ledger(f).CheckSettled(t, 2, 2)
		})
	}
}

// Close after an fsync in the background has failed returns that. It is not tried
// again, not even where lines came while it was under way.
func TestCloseAfterAFailedSync(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, mode file.Mode, dir string) {
		s := &syncs{errs: []error{syscall.EIO}, takes: time.Second / 2}
		f := open(t, filepath.Join(dir, "log"), file.Options{Mode: mode, Sync: file.SyncInterval})
		f.SetSync(s.sync)
		current := f.Current()
		write(t, f, "one\n")
		time.Sleep(1200 * time.Millisecond) // within the fsync
		write(t, f, "two\n")
		time.Sleep(5 * time.Second)
		if err := f.Close(); !errors.Is(err, syscall.EIO) {
			t.Errorf("Close = %v", err)
		}
		if n := s.calls(current); n != 1 {
			t.Errorf("%d calls of fsync", n)
		}
		ledger(f).CheckSettled(t, 2, 2)
	})
}

// An fsync that fails after its file was rotated is no reason to leave the next
// one. Sync tells of it.
func TestSyncFailsAfterARotation(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, mode file.Mode, dir string) {
		s := &syncs{errs: []error{syscall.EIO}, takes: time.Second}
		f := open(t, filepath.Join(dir, "log"), file.Options{Mode: mode, Sync: file.SyncInterval, SyncEvery: time.Minute})
		f.SetSync(s.sync)
		write(t, f, "one\n")
		time.Sleep(time.Minute + time.Second/2) // within the fsync
		testkit.OK(t, f.Rotate())
		write(t, f, "two\n")
		time.Sleep(10 * time.Second) // it has failed
		write(t, f, "last\n")
		f.Told()
		if st := f.Stats(); st.Abandoned != 0 || st.Rotations != 1 {
			t.Errorf("Stats %+v", st)
		}
		if err := f.Sync(); !errors.Is(err, syscall.EIO) {
			t.Errorf("Sync = %v", err)
		}
		if err := f.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
}

// Sync beside an fsync in the background waits for that: of two at once the system
// tells one alone what it lost. Nor does a later Sync call it again and find all
// well.
func TestSyncBesideTheOneInTheBackground(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, mode file.Mode, dir string) {
		s := &syncs{takes: time.Second, errs: []error{syscall.EIO}}
		f := open(t, filepath.Join(dir, "log"), file.Options{Mode: mode, Sync: file.SyncInterval, SyncEvery: time.Minute})
		f.SetSync(s.sync)
		old := f.Current()
		write(t, f, "one\n")
		time.Sleep(time.Minute + time.Second/2) // within the fsync
		for range 3 {
			if err := f.Sync(); !errors.Is(err, syscall.EIO) {
				t.Errorf("Sync = %v", err)
			}
			synctest.Wait()
		}
		if n := s.calls(old); n != 1 {
			t.Errorf("%d calls of fsync", n)
		}
		f.Close()
	})
}

// An fsync in the background that takes long holds up no Write, and is told: once
// for a row of them.
func TestSlowSyncInterval(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, mode file.Mode, dir string) {
		const every, slow = 10 * time.Second, file.SlowSync
		var heard told
		var takes atomic.Int64 // ns
		f := open(t, filepath.Join(dir, "log"), file.Options{Mode: mode, Sync: file.SyncInterval, SyncEvery: every, OnError: heard.add})
		f.SetSync(func(g *os.File) error { time.Sleep(time.Duration(takes.Load())); return disk.SyncData(g) })
		round := func(fsync time.Duration, told int) {
			t.Helper()
			takes.Store(int64(fsync))
			began := time.Now()
			write(t, f, "line\n")
			time.Sleep(every + slow/2) // within the fsync
			write(t, f, "line\n")
			if took := time.Since(began); took != every+slow/2 {
				t.Errorf("two Writes took %v", took-every-slow/2)
			}
			time.Sleep(slow)
			f.Told()
			if n := strings.Count(heard.String(), "fsync in the background has not returned for 1s"); n != told {
				t.Fatalf("with an fsync of %v it was told %d times, want %d: %s", fsync, n, told, heard.String())
			}
			time.Sleep(9*every - slow/2 - slow) // the next round begins at a tick
		}
		round(0, 0)
		round(slow-time.Millisecond, 0)
		round(3*every, 1)
		round(0, 1)
		round(slow+time.Millisecond, 2)
		takes.Store(0)
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
}
