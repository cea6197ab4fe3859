//go:build unix

package file_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/testkit"
)

func TestFollowsMovedFile(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode file.Mode) {
		path := filepath.Join(t.TempDir(), "log")
		var heard told
		f := openChecking(t, path, file.Options{Mode: mode, OnError: heard.add}, quick)
		write(t, f, "1\n")
		testkit.OK(t, os.Rename(path, path+".1"))
		if err := os.WriteFile(path, nil, 0o600); err != nil { // create mode
			t.Fatal(err)
		}
		write(t, f, "2\n")
		want(t, path+".1", "1\n")
		want(t, path, "2\n")
		f.Told()
		if s, notices := f.Stats(), heard.all(); s.Followed != 1 || len(notices) != 1 || !strings.Contains(notices[0], "another file") {
			t.Errorf("Stats = %+v, notices %q", s, notices)
		}
		ledger(f).CheckSettled(t, 2, 2)
	})
}

// Removed, and its folder too: the lines go on into the old file, which is
// said, until there is a place again.
func TestFollowsRemovedFile(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode file.Mode) {
		folder := filepath.Join(t.TempDir(), "logs")
		path := filepath.Join(folder, "log")
		testkit.OK(t, os.Mkdir(folder, 0o700))
		synctest.Test(t, func(t *testing.T) {
			var told, anew atomic.Int32
			f := open(t, path, file.Options{Mode: mode, OnError: func(err error) {
				if strings.Contains(err.Error(), "was moved away or removed: it was created again") {
					anew.Add(1)
					return
				}
				told.Add(1)
				if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), folder) {
					t.Errorf("OnError(%v)", err)
				}
			}})
			lines := 0
			next := func(there bool) {
				t.Helper()
				lines++
				write(t, f, fmt.Sprintf("%d\n", lines))
				if _, err := os.Stat(path); (err == nil) != there {
					t.Errorf("line %d: Stat = %v", lines, err)
				}
				time.Sleep(time.Second)
			}
			next(true)
			testkit.OK(t, os.Remove(path))
			next(false) // seen
			next(true)
			want(t, path, "3\n")
			testkit.OK(t, os.RemoveAll(folder))
			for range 20 {
				next(false)
			}
			if told.Load() != 1 || anew.Load() != 1 {
				t.Errorf("OnError got %d errors, and %d times that the file was created again", told.Load(), anew.Load())
			}
			testkit.OK(t, os.Mkdir(folder, 0o700))
			next(false)
			next(true)
			ledger(f).CheckSettled(t, lines, lines)
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			if anew.Load() != 2 {
				t.Errorf("OnError got %d times that the file was created again", anew.Load())
			}
		})
	})
}

// A file that another program has cut to nothing is gone on with at its new
// end, without a hole.
func TestTruncatedFile(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode file.Mode) {
		path := filepath.Join(t.TempDir(), "log")
		f := openChecking(t, path, file.Options{Mode: mode, MaxSize: 100}, quick)
		write(t, f, strings.Repeat("x", 89)+"\n")
		testkit.OK(t, os.Truncate(path, 0))
		write(t, f, "after the cut\n") // and no rotation, as the file has room again
		want(t, path, "after the cut\n")
		if s := f.Stats(); s.Truncations != 1 || s.Rotations != 0 {
			t.Errorf("Stats = %+v", s)
		}
	})
}

// Permissions and owner go to the new file, the rotated and the packed one.
func TestRotationKeepsPermissionsAndOwner(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode file.Mode) {
		path := filepath.Join(t.TempDir(), "log")
		f := open(t, path, file.Options{Mode: mode, Compress: file.Gzip{}, KeepPlain: 1, OnError: func(err error) { t.Errorf("OnError(%v)", err) }})
		testkit.OK(t, os.Chmod(path, 0o646))
		uid, gid := os.Getuid(), os.Getgid()
		if uid == 0 {
			uid, gid = 1234, 5678
			testkit.OK(t, os.Chown(path, uid, gid))
		}
		rotate(t, f, 2, 100)
		testkit.OK(t, f.Close())
		names := append(rotated(t, path), path)
		if len(names) != 3 || !strings.HasSuffix(names[0], ".gz") {
			t.Fatalf("the series is %v", names)
		}
		for _, name := range names {
			info, err := os.Stat(name)
			testkit.OK(t, err)
			st := info.Sys().(*syscall.Stat_t)
			if info.Mode() != 0o646 || int(st.Uid) != uid || int(st.Gid) != gid {
				t.Errorf("%s: mode %v, owner %d:%d, want 0646, %d:%d", name, info.Mode(), st.Uid, st.Gid, uid, gid)
			}
		}
	})
}

// A path that is a symbolic link stays one: what it points to is rotated, where
// it is.
func TestRotationBehindSymbolicLink(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode file.Mode) {
		dir := t.TempDir()
		data, path := filepath.Join(dir, "data"), filepath.Join(dir, "app.log")
		testkit.OK(t, os.Mkdir(data, 0o700))
		testkit.OK(t, os.Symlink(filepath.Join("data", "real.log"), path))
		f := openChecking(t, path, file.Options{Mode: mode}, quick)
		rotate(t, f, 2, 10)
		write(t, f, "now\n")
		if to, err := os.Readlink(path); to != filepath.Join("data", "real.log") || err != nil {
			t.Errorf("the link points to %q, %v", to, err)
		}
		want(t, path, "now\n")
		if got := rotated(t, filepath.Join(data, "real.log")); len(got) != 2 {
			t.Errorf("rotated %v", got)
		}
		// Pointed elsewhere, it is followed.
		testkit.OK(t, os.Remove(path))
		testkit.OK(t, os.WriteFile(filepath.Join(data, "other.log"), nil, 0o600))
		testkit.OK(t, os.Symlink(filepath.Join("data", "other.log"), path))
		write(t, f, "there\n")
		want(t, filepath.Join(data, "other.log"), "there\n")
	})
}

// Options.Link is made, replaced in one step and left alone if it is a file.
func TestLink(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode file.Mode) {
		dir := t.TempDir()
		path, link := filepath.Join(dir, "app.log"), filepath.Join(dir, "current")
		pointsTo := func(to string) {
			t.Helper()
			if got, err := os.Readlink(link); got != to || err != nil {
				t.Errorf("the link points to %q, %v, want %q", got, err, to)
			}
		}
		f := open(t, path, file.Options{Mode: mode, Link: link})
		pointsTo("app.log")
		rotate(t, f, 2, 10)
		write(t, f, "now\n")
		want(t, link, "now\n")

		// Never missing while it is replaced.
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			for {
				if _, err := os.Lstat(link); err != nil {
					t.Errorf("the link was gone: %v", err)
					return
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
		for i := range 20 {
			other := open(t, filepath.Join(dir, fmt.Sprintf("other%d", i)), file.Options{Mode: mode, Link: link})
			if err := other.Close(); err != nil {
				t.Error(err)
			}
		}
		close(stop)
		wg.Wait()
		pointsTo("other19")
		if got := glob(t, link+".*"); len(got) > 0 {
			t.Errorf("left %v", got)
		}

		testkit.OK(t, errors.Join(f.Close(), os.Remove(link), os.WriteFile(link, []byte("mine"), 0o600)))
		var told []string
		open(t, path, file.Options{Mode: mode, Link: link, OnError: func(err error) { told = append(told, err.Error()) }}).Told()
		if len(told) != 1 || !strings.Contains(told[0], "no symbolic link") {
			t.Errorf("told %q", told)
		}
		want(t, link, "mine")
	})
}

// A rotation that fails loses nothing: the file in use is written on, it is
// told and tried again.
func TestRotationThatFails(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode file.Mode) {
		dir := t.TempDir()
		folder, path := filepath.Join(dir, "old"), filepath.Join(dir, "log")
		testkit.OK(t, os.Mkdir(folder, 0o700))
		synctest.Test(t, func(t *testing.T) {
			var told atomic.Int32
			f := open(t, path, file.Options{Mode: mode, MaxSize: 10, Folder: folder, OnError: func(err error) {
				told.Add(1)
				if !strings.Contains(err.Error(), "file in use is written on") && !strings.HasSuffix(err.Error(), folder+": no such file or directory") {
					t.Errorf("OnError(%v)", err)
				}
			}})
			write(t, f, "1\n")
			testkit.OK(t, os.Remove(folder))
			lines := 1
			for range 50 {
				lines++
				write(t, f, fmt.Sprintf("%d\n", lines))
			}
			f.Told()
			if got := strings.Count(read(t, path), "\n"); got != lines || told.Load() == 0 || told.Load() > 20 {
				t.Errorf("%d of %d lines, told %d times", got, lines, told.Load())
			}
			if err := f.Rotate(); err == nil {
				t.Error("Rotate = nil error")
			}
			testkit.OK(t, os.Mkdir(folder, 0o700))
			for f.Stats().Rotations == 0 && lines < 100 {
				time.Sleep(100 * time.Millisecond)
				lines++
				write(t, f, fmt.Sprintf("%d\n", lines))
			}
			if s := f.Stats(); s.Rotations != 1 {
				t.Errorf("Stats = %+v", s)
			}
			ledger(f).CheckSettled(t, lines, lines)
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		})
	})
}

// Two Files on one path, as of two processes, at the same instants: every line
// is there once, and what the other still writes to is neither packed nor
// removed.
func TestTwoFilesOnOnePath(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode file.Mode) {
		if mode == file.Direct {
			return // TestDirectSharesWithNobody
		}
		path := filepath.Join(t.TempDir(), "log")
		o := file.Options{Mode: mode, MaxSize: 2000, Compress: file.Gzip{}, OnError: func(err error) {
			if !strings.Contains(err.Error(), "is another file now") {
				t.Errorf("OnError(%v)", err)
			}
		}}
		var wg sync.WaitGroup
		const writers, each = 4, 500
		files := make([]*file.File, writers)
		for p := range writers {
			files[p] = openChecking(t, path, o, quick)
		}
		for p, f := range files {
			wg.Go(func() {
				for i := range each {
					if _, err := fmt.Fprintf(f, "%d %d %s\n", p, i, strings.Repeat("x", i%50)); err != nil {
						t.Error(err)
					}
					if i%100 == 99 {
						if err := f.Rotate(); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		wg.Wait()
		for _, f := range files {
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			ledger(f).CheckSettled(t, each, each)
		}
		names, contents := parts(t, path, nil)
		var lines []string
		for _, c := range contents {
			lines = append(lines, strings.SplitAfter(strings.TrimSuffix(c, "\n"), "\n")...)
		}
		// Names are of the moment of rotation; who was late may have put a line
		// into a file before the last, so only presence is checked, not order.
		seen := map[string]int{}
		for _, line := range lines {
			var p, i int
			if n, err := fmt.Sscanf(line, "%d %d", &p, &i); n == 2 && err == nil {
				seen[fmt.Sprint(p, " ", i)]++
			} else if line != "" {
				t.Errorf("line %q: %v", line, err)
			}
		}
		for p := range writers {
			for i := range each {
				if n := seen[fmt.Sprint(p, " ", i)]; n != 1 {
					t.Errorf("line %d of writer %d is there %d times", i, p, n)
				}
			}
		}
		if len(names) < 20 {
			t.Errorf("%d files, this tests little", len(names))
		}
	})
}

// While another process has a rotated file open for writing it is neither
// packed nor removed; afterwards it is.
func TestBusyFileIsLeftAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	late := open(t, path, file.Options{NoFollow: true})
	write(t, late, "1\n")
	f := open(t, path, file.Options{Compress: file.Gzip{}, KeepCount: 1})
	rotate(t, f, 3, 10)
	eventually(t, "a pass", func() bool { return f.Stats().Compressed+f.Stats().Removed >= 2 })
	write(t, late, "2\n")
	testkit.OK(t, f.Close())
	_, contents := parts(t, path, nil)
	if !slices.ContainsFunc(contents, func(c string) bool { return strings.Contains(c, "1\n") && strings.Contains(c, "2\n") }) {
		t.Errorf("the file in use was touched: %q", contents)
	}
	testkit.OK(t, late.Close())
	f = open(t, path, file.Options{Compress: file.Gzip{}, KeepCount: 1})
	testkit.OK(t, f.Close())
	if got := rotated(t, path); len(got) != 1 || !strings.HasSuffix(got[0], ".gz") {
		t.Errorf("at last: %v", got)
	}
}

// A line whose end another process has still to write is not cut.
func TestLineOfAnotherProcessIsNotCut(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	open(t, path, file.Options{})
	other, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	testkit.OK(t, err)
	defer other.Close()
	if _, err := other.WriteString("half a li"); err != nil {
		t.Fatal(err)
	}
	f := open(t, path, file.Options{})
	want(t, path, "half a li")
	if s := f.Stats(); s.CutBytes != 0 {
		t.Errorf("%d bytes cut", s.CutBytes)
	}
}

func TestReopenOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f := open(t, path, file.Options{NoFollow: true})
	stop := f.ReopenOn(syscall.SIGUSR1)
	other := f.ReopenOn() // on no signal, not on all
	defer other()
	write(t, f, "1\n")
	testkit.OK(t, os.Rename(path, path+".1"))
	testkit.OK(t, syscall.Kill(os.Getpid(), syscall.SIGUSR1))
	eventually(t, "reopened", func() bool { return f.Stats().Reopens == 1 })
	write(t, f, "2\n")
	want(t, path+".1", "1\n")
	want(t, path, "2\n")
	got := make(chan os.Signal, 1) // a signal without a listener would end the process
	signal.Notify(got, syscall.SIGUSR1)
	defer signal.Stop(got)
	ignored := func() {
		t.Helper()
		testkit.OK(t, syscall.Kill(os.Getpid(), syscall.SIGUSR1))
		<-got
		if n := f.Stats().Reopens; n != 1 {
			t.Errorf("%d reopened", n)
		}
	}
	stop()
	stop()
	ignored()
	f.ReopenOn(syscall.SIGUSR1)
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	ignored()
	f.ReopenOn(syscall.SIGUSR1)() // after Close: nothing
}

// Rotation, Reopen, packing and Close leave no descriptor behind.
func TestNoDescriptorIsLeft(t *testing.T) {
	count := func() int {
		names, err := os.ReadDir("/dev/fd")
		if err != nil {
			t.Skip("this system does not list open files: ", err)
		}
		return len(names)
	}
	before := count()
	for range 5 {
		f := open(t, filepath.Join(t.TempDir(), "log"), file.Options{MaxSize: 100, Compress: file.Gzip{}, KeepCount: 2, Sync: file.SyncInterval, CloseTimeout: time.Minute})
		for i := range 100 {
			write(t, f, fmt.Sprintf("line %d\n", i))
			testkit.OK(t, f.Reopen())
		}
		testkit.OK(t, f.Rotate())
		testkit.OK(t, f.Close())
	}
	eventually(t, fmt.Sprintf("%d files open, as before", before), func() bool { return count() <= before })
}

// A File needs neither a library's signal handler nor one of its own: the
// program's stay as they are.
func TestSignalsAreLeftAlone(t *testing.T) {
	got := make(chan os.Signal, 1)
	signal.Notify(got, syscall.SIGUSR2)
	defer signal.Stop(got)
	ignored := signal.Ignored(syscall.SIGHUP) // as under nohup
	f := open(t, filepath.Join(t.TempDir(), "log"), file.Options{MaxSize: 10})
	rotate(t, f, 1, 5)
	if signal.Ignored(syscall.SIGHUP) != ignored {
		t.Error("whether SIGHUP is ignored has changed")
	}
	testkit.OK(t, syscall.Kill(os.Getpid(), syscall.SIGUSR2))
	select {
	case <-got:
	case <-time.After(time.Minute):
		t.Fatal("the program's own handler got no signal")
	}
	if s := f.Stats(); s.Reopens != 0 {
		t.Errorf("Stats = %+v", s)
	}
}

// OnRotated is told of a file that was rotated although another process has made
// the next one first.
func TestOnRotatedWhenOvertaken(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	var mu sync.Mutex
	var told []string
	f := open(t, path, file.Options{OnRotated: func(path string) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, path)
	}})
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if other, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640); err == nil {
				other.Close()
			}
		}
	}()
	rotations := 0
	for f.Stats().Reopens < 3 && rotations < 5_000 {
		write(t, f, "line\n")
		testkit.OK(t, f.Rotate())
		rotations++
	}
	close(stop)
	<-stopped
	reopens := f.Stats().Reopens
	testkit.OK(t, f.Close())
	slices.Sort(told)
	if got := rotated(t, path); !slices.Equal(got, told) || len(told) != rotations {
		t.Errorf("%d rotations, %d of them overtaken: OnRotated was told of %d files, there are %d", rotations, reopens, len(told), len(got))
	}
}
