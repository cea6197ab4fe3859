package file_test

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/logfile"
	"github.com/rollway/rollway/internal/testkit"
	"github.com/rollway/rollway/rollwaytest"
)

// quick has the path looked at by every Write.
const quick = time.Nanosecond

var modes = []file.Mode{file.Buffered, file.Direct, file.Uncached}

// eachMode runs a test in every mode that the system has.
func eachMode(t *testing.T, test func(t *testing.T, mode file.Mode)) {
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			need(t, mode)
			t.Parallel()
			test(t, mode)
		})
	}
}

// need skips where no file of the system can be written in the mode.
func need(t testing.TB, mode file.Mode) {
	t.Helper()
	if mode == file.Uncached && runtime.GOOS != "linux" || mode == file.Direct && runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skipf("%v is not for %s, which TestModeOfTheSystem is about", mode, runtime.GOOS)
	}
}

// memoryDir returns a folder in memory where the system has one: fsync costs
// nothing there.
func memoryDir(t testing.TB) string { return fastDir(t, file.Buffered) }

// fastDir is memoryDir for modes that a file system in memory has.
func fastDir(t testing.TB, mode file.Mode) string {
	t.Helper()
	if mode != file.Buffered {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp("/dev/shm", "file")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// open opens a File with time to sync and to close while the disk is busy too,
// and closes it at the end of the test.
func open(t testing.TB, path string, o file.Options) *file.File {
	t.Helper()
	return openChecking(t, path, o, time.Second)
}

// openChecking is open with another time between two checks of the path.
func openChecking(t testing.TB, path string, o file.Options, every time.Duration) *file.File {
	t.Helper()
	o.CloseTimeout = cmp.Or(o.CloseTimeout, time.Minute)
	f, err := file.OpenChecking(path, o, every)
	testkit.OK(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

// told collects what OnError gets.
type told struct {
	mu   sync.Mutex
	errs []string
}

func (l *told) add(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errs = append(l.errs, err.Error())
}

func (l *told) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.errs)
}

func (l *told) String() string { return strings.Join(l.all(), "\n") }

func ledger(f *file.File) rollwaytest.Ledger {
	s := f.Stats()
	return rollwaytest.Ledger{Ledger: s.Ledger}
}

func write(t testing.TB, w io.Writer, p string) {
	t.Helper()
	if n, err := w.Write([]byte(p)); n != len(p) || err != nil {
		t.Fatalf("Write(%.60q) = %d, %v, want %d, nil", p, n, err, len(p))
	}
}

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	testkit.OK(t, err)
	return string(b)
}

func want(t testing.TB, path, content string) {
	t.Helper()
	if got := read(t, path); got != content {
		t.Errorf("%s holds %d bytes %.300q, want %d bytes %.300q", path, len(got), got, len(content), content)
	}
}

func TestOpenErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	binary := filepath.Join(dir, "binary")
	const size = logfile.SearchLimit + 1<<20
	testkit.OK(t, errors.Join(os.WriteFile(binary, nil, 0o600), os.Truncate(binary, size)))
	plain := filepath.Join(dir, "plain")
	testkit.OK(t, os.WriteFile(plain, nil, 0o600))
	for _, c := range []struct {
		path string
		o    file.Options
		want []string
	}{
		{"", file.Options{}, []string{"path is empty"}},
		{dir, file.Options{}, []string{dir, "is a folder"}},
		{dir + "/x/", file.Options{}, []string{"folder"}},
		{filepath.Join(dir, "no", "such", "log"), file.Options{}, []string{filepath.Join(dir, "no", "such"), "does not exist", "create it"}},
		{filepath.Join(plain, "log"), file.Options{}, []string{plain}},
		{binary, file.Options{}, []string{binary, "not a log file"}},
		{filepath.Join(dir, "a"), file.Options{Perm: fs.ModeDir | 0o700}, []string{"Options.Perm"}},
		{filepath.Join(dir, "a"), file.Options{Sync: 7}, []string{"Options.Sync", "SyncPolicy(7)"}},
		{filepath.Join(dir, "a"), file.Options{CloseTimeout: -1}, []string{"Options.CloseTimeout"}},
		{filepath.Join(dir, "a"), file.Options{Failover: filepath.Join(dir, "no")}, []string{"Options.Failover"}},
		{filepath.Join(dir, "a"), file.Options{Failover: binary}, []string{"Options.Failover"}},
		{filepath.Join(dir, "a"), file.Options{Failover: dir}, []string{"Options.Failover", "other than"}},
		{os.DevNull, file.Options{Failover: dir}, []string{"not a regular file"}},
	} {
		f, err := file.Open(c.path, c.o)
		if err == nil {
			f.Close()
			t.Errorf("Open(%q, %+v) = nil error", c.path, c.o)
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("Open(%q): error %q lacks %q", c.path, err, part)
			}
		}
	}
	if info, err := os.Stat(binary); err != nil || info.Size() != size {
		t.Errorf("the file that is no log was changed: %v, %v", info, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "a")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a refused Open left a file: %v", err)
	}
}

func TestPerm(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no permission bits")
	}
	dir := t.TempDir()
	mode := func(name string) fs.FileMode {
		info, err := os.Stat(filepath.Join(dir, name))
		testkit.OK(t, err)
		return info.Mode()
	}
	open(t, filepath.Join(dir, "default"), file.Options{})
	open(t, filepath.Join(dir, "own"), file.Options{Perm: 0o600})
	testkit.OK(t, os.WriteFile(filepath.Join(dir, "old"), nil, 0o604))
	before := mode("old")
	open(t, filepath.Join(dir, "old"), file.Options{Perm: 0o600})
	if got := mode("default"); got&^0o640 != 0 || got&0o600 != 0o600 {
		t.Errorf("default permissions %v, want 0640 less the umask", got)
	}
	if got := mode("own"); got != 0o600 {
		t.Errorf("permissions %v, want 0600", got)
	}
	if got := mode("old"); got != before {
		t.Errorf("an existing file went from %v to %v", before, got)
	}
}

func TestTornTailIsCut(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode file.Mode) {
		long := strings.Repeat("x", 200<<10)
		for _, c := range []struct{ old, kept string }{
			{"", ""},
			{"a\n", "a\n"},
			{"a\nb", "a\n"},
			{"torn", ""},
			{"a\n" + long, "a\n"},
			{long + "\n", long + "\n"},
			{strings.Repeat("y", 64<<10-1) + "\n" + strings.Repeat("z", 64<<10), strings.Repeat("y", 64<<10-1) + "\n"},
			{"a\n" + strings.Repeat("\x00", 5000), "a\n"}, // as a power cut leaves it
		} {
			path := filepath.Join(t.TempDir(), "log")
			testkit.OK(t, os.WriteFile(path, []byte(c.old), 0o600))
			var heard told
			f := open(t, path, file.Options{Mode: mode, OnError: heard.add})
			write(t, f, "new\n")
			want(t, path, c.kept+"new\n")
			cut := len(c.old) - len(c.kept)
			if got := f.Stats().CutBytes; got != uint64(cut) {
				t.Errorf("CutBytes = %d, want %d", got, cut)
			}
			f.Told()
			notices := heard.all()
			if cut == 0 && len(notices) > 0 || cut > 0 && (len(notices) != 1 || !strings.Contains(notices[0], fmt.Sprint(cut, " bytes"))) {
				t.Errorf("%d bytes cut, notices %.200q", cut, notices)
			}
			ledger(f).CheckSettled(t, 1, 1)
		}
	})
}

func TestReopen(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode file.Mode) {
		if runtime.GOOS == "windows" {
			t.Skip("Windows does not rename an open file")
		}
		dir := t.TempDir()
		path, old := filepath.Join(dir, "log"), filepath.Join(dir, "log.1")
		f := open(t, path, file.Options{Mode: mode})
		write(t, f, "1\n2\n")
		testkit.OK(t, os.Rename(path, old))
		write(t, f, "3\n")
		testkit.OK(t, f.Reopen())
		write(t, f, "4\n")
		want(t, old, "1\n2\n3\n")
		want(t, path, "4\n")

		// A path that cannot be opened: the old file stays in use.
		testkit.OK(t, os.Rename(path, filepath.Join(dir, "log.2")))
		testkit.OK(t, os.Mkdir(path, 0o700))
		if err := f.Reopen(); err == nil || !strings.Contains(err.Error(), "old file stays in use") {
			t.Errorf("Reopen of a folder = %v", err)
		}
		write(t, f, "5\n")
		want(t, filepath.Join(dir, "log.2"), "4\n5\n")
		if s := f.Stats(); s.Reopens != 1 || s.Errors != 1 || s.LastError == nil || s.LastErrorTime.IsZero() || s.Failing || s.Bytes != 10 || s.Path != path {
			t.Errorf("Stats = %+v", s)
		}
		ledger(f).CheckSettled(t, 5, 5)
		if err := f.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
		if err := f.Reopen(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("Reopen after Close = %v", err)
		}
	})
}

// Writers, Reopen after a rename, Sync and Stats at once: each line is in one
// of the files, whole, and those of one writer are in order.
func TestReopenAmidWrites(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode file.Mode) {
		if runtime.GOOS == "windows" {
			t.Skip("Windows does not rename an open file")
		}
		const producers, each, rotations = 4, 500, 20
		dir := t.TempDir()
		path := filepath.Join(dir, "log")
		f := open(t, path, file.Options{Mode: mode})
		var wg sync.WaitGroup
		for p := range producers {
			wg.Go(func() {
				for i := range each {
					if _, err := fmt.Fprintf(f, "%d %d %s\n", p, i, strings.Repeat("x", i)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		for i := range rotations {
			testkit.OK(t, os.Rename(path, fmt.Sprintf("%s.%03d", path, i)))
			testkit.OK(t, f.Reopen())
			testkit.OK(t, f.Sync())
			ledger(f).Check(t)
			from := f.Stats().Written
			eventually(t, "more lines", func() bool { return f.Stats().Written > from+20 || f.Stats().Written == producers*each })
		}
		wg.Wait()
		testkit.OK(t, f.Close())
		var all strings.Builder
		for i := range rotations {
			all.WriteString(read(t, fmt.Sprintf("%s.%03d", path, i)))
		}
		all.WriteString(read(t, path))
		next := make([]int, producers)
		for line := range strings.Lines(all.String()) {
			var p, i int
			var pad string
			if n, err := fmt.Sscanf(line, "%d %d %s", &p, &i, &pad); n < 2 || i > 0 && err != nil || len(pad) != i || i != next[p] {
				t.Fatalf("line %.40q after line %d of producer %d: %v", line, next[p]-1, p, err)
			}
			next[p]++
		}
		for p, n := range next {
			if n != each {
				t.Errorf("producer %d: %d lines, want %d", p, n, each)
			}
		}
		ledger(f).CheckSettled(t, producers*each, producers*each)
	})
}

func TestSyncPolicy(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode file.Mode) {
		for policy, syncs := range map[file.SyncPolicy]uint64{file.SyncNever: 0, file.SyncEachWrite: 3} {
			f := open(t, filepath.Join(t.TempDir(), "log"), file.Options{Mode: mode, Sync: policy})
			for range 3 {
				write(t, f, "line\n")
			}
			if got := f.Stats().Syncs; got != syncs {
				t.Errorf("%v: %d calls of fsync for 3 Writes, want %d", policy, got, syncs)
			}
			if err := f.Sync(); err != nil {
				t.Errorf("Sync = %v", err)
			}
			if got := f.Stats().Syncs; got != syncs+1 {
				t.Errorf("%v: %d calls of fsync after Sync, want %d", policy, got, syncs+1)
			}
		}
	})
}

func TestCloseAmidEverything(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode file.Mode) {
		for range 8 {
			path := filepath.Join(t.TempDir(), "log")
			f := open(t, path, file.Options{Mode: mode})
			var wg sync.WaitGroup
			var mu sync.Mutex
			accepted := 0
			for range 4 {
				wg.Go(func() {
					for {
						if _, err := f.Write([]byte("line\n")); err != nil {
							if !errors.Is(err, os.ErrClosed) {
								t.Errorf("Write = %v", err)
							}
							return
						}
						mu.Lock()
						accepted++
						mu.Unlock()
					}
				})
			}
			wg.Go(func() {
				for range 5 {
					f.Sync()
					f.Flush(t.Context())
					f.Reopen()
				}
			})
			eventually(t, "some lines", func() bool { return f.Stats().Written > 20 })
			wg.Go(func() { f.Close() })
			if err := f.Close(); err != nil {
				t.Errorf("Close = %v", err)
			}
			wg.Wait()
			want(t, path, strings.Repeat("line\n", accepted))
			ledger(f).CheckSettled(t, accepted, accepted)
			if err := f.Sync(); err != nil {
				t.Errorf("Sync after Close = %v, want what Close returned", err)
			}
		}
	})
}
