package file_test

import (
	"bytes"
	"compress/gzip"
	"context"
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
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/testkit"
)

// rotate writes and rotates n files with the contents "file I\n" padded to
// size.
func rotate(t *testing.T, f *file.File, n, size int) {
	t.Helper()
	for i := range n {
		head := fmt.Sprintf("file %d", i)
		write(t, f, head+strings.Repeat(".", max(0, size-len(head)-1))+"\n")
		testkit.OK(t, f.Rotate())
	}
}

func TestKeepCount(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode file.Mode) {
		path := filepath.Join(t.TempDir(), "log")
		f := open(t, path, file.Options{Mode: mode, KeepCount: 3})
		rotate(t, f, 10, 8)
		write(t, f, "current\n")
		eventually(t, "7 pruned", func() bool { return f.Stats().Removed == 7 })
		if _, got := parts(t, path, nil); strings.Join(got, "") != "file 7.\nfile 8.\nfile 9.\ncurrent\n" {
			t.Errorf("parts %q", got)
		}
		if s := f.Stats(); s.RemovedBytes != 7*8 || s.Errors != 0 {
			t.Errorf("Stats = %+v", s)
		}
	})
}

// KeepSize is the whole series, and a current file that may yet grow counts
// with what it may grow to.
func TestKeepSize(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode file.Mode) {
		for _, c := range []struct {
			o    file.Options
			kept int
		}{
			{file.Options{Mode: mode, KeepSize: 550}, 5},
			{file.Options{Mode: mode, KeepSize: 550, MaxSize: 200}, 3},
		} {
			path := filepath.Join(t.TempDir(), "log")
			f := open(t, path, c.o)
			rotate(t, f, 10, 100)
			eventually(t, "pruned", func() bool { return f.Stats().Removed == uint64(10-c.kept) })
			if got := rotated(t, path); len(got) != c.kept {
				t.Errorf("%+v: %d kept, want %d", c.o, len(got), c.kept)
			}
		}
	})
}

// Foreign files that look alike are left alone.
func TestOnlyOwnFilesArePruned(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "app.log")
	foreign := []string{"app-20261121T080309.123456789Z-5f3a2c.log.bak", "app-old.log", "app.log.1", "app-web-20261121T080309.123456789Z-5f3a2c.log", "app-2016-11-04T18-30-00.000.log"}
	for _, name := range foreign {
		testkit.OK(t, os.WriteFile(filepath.Join(dir, name), []byte("x\n"), 0o600))
	}
	folder := "app-20261121T080309.123456789Z-5f3a2d.log"
	testkit.OK(t, os.Mkdir(filepath.Join(dir, folder), 0o700))
	f := open(t, path, file.Options{KeepCount: 1, Compress: file.Gzip{}})
	rotate(t, f, 3, 10)
	testkit.OK(t, f.Close())
	for _, name := range append(foreign, folder) {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	if s := f.Stats(); s.Removed != 2 || s.Compressed == 0 || s.Errors != 0 {
		t.Errorf("Stats = %+v", s)
	}
}

// A packed file has the content, permissions and time of what it was.
func TestCompress(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode file.Mode) {
		path := filepath.Join(t.TempDir(), "log")
		f := open(t, path, file.Options{Mode: mode, Compress: file.Gzip{Level: 9}, OnError: func(err error) { t.Error(err) }})
		testkit.OK(t, os.Chmod(path, 0o604))
		rotate(t, f, 1, 100_000)
		before, err := os.Stat(path)
		testkit.OK(t, err)
		eventually(t, "packed", func() bool { return f.Stats().Compressed == 1 && len(rotated(t, path)) == 1 })
		name := rotated(t, path)[0]
		if !strings.HasSuffix(name, ".gz") {
			t.Fatalf("%s is not packed", name)
		}
		info, err := os.Stat(name)
		testkit.OK(t, err)
		if info.Mode() != before.Mode() || time.Since(info.ModTime()) > time.Hour {
			t.Errorf("a packed file of mode %v and time %v", info.Mode(), info.ModTime())
		}
		if _, got := parts(t, path, nil); len(got[0]) != 100_000 || !strings.HasPrefix(got[0], "file 0.") {
			t.Errorf("%d bytes in the packed file", len(got[0]))
		}
		if s := f.Stats(); s.CompressedFrom != 100_000 || s.CompressedTo != uint64(info.Size()) || s.CompressedTo > 2000 {
			t.Errorf("Stats = %+v", s)
		}
	})
}

func TestKeepPlain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	f := open(t, path, file.Options{Compress: file.Gzip{}, KeepPlain: 2})
	rotate(t, f, 5, 10)
	testkit.OK(t, f.Close())
	var packed []bool
	for _, name := range rotated(t, path) {
		packed = append(packed, strings.HasSuffix(name, ".gz"))
	}
	if !slices.Equal(packed, []bool{true, true, true, false, false}) {
		t.Errorf("packed %v", packed)
	}
}

func TestBadCompressors(t *testing.T) {
	t.Parallel()
	for _, ext := range []string{"", "gz", ".", ".g/z", ".part", ".gz.x"} {
		if _, err := file.Open(filepath.Join(t.TempDir(), "log"), file.Options{Compress: &faulty{ext: ext}}); err == nil || !strings.Contains(err.Error(), "extension") {
			t.Errorf("extension %q: %v", ext, err)
		}
	}
	if _, err := (file.Gzip{Level: 10}).NewWriter(io.Discard); err == nil {
		t.Error("level 10 = nil error")
	}
}

// faulty is a Compressor whose Writes fail or hang.
type faulty struct {
	file.Gzip
	ext   string
	fails atomic.Int32  // this often
	gate  chan struct{} // hang until it is closed
	hung  chan struct{} // closed when the first one hangs
	once  sync.Once
}

func (c *faulty) Extension() string { return c.ext }

func (c *faulty) NewWriter(w io.Writer) (io.WriteCloser, error) {
	zw, err := c.Gzip.NewWriter(w)
	return &faultyWriter{zw, c}, err
}

type faultyWriter struct {
	io.WriteCloser
	c *faulty
}

func (w *faultyWriter) Write(p []byte) (int, error) {
	if w.c.gate != nil {
		w.c.once.Do(func() { close(w.c.hung) })
		<-w.c.gate
	}
	if n := w.c.fails.Add(-1); n == 0 {
		panic("injected")
	} else if n > 0 {
		return 0, errors.New("injected")
	}
	return w.WriteCloser.Write(p)
}

// A Compressor that fails or panics is told and tried again; the file stays as
// it is, and Writes do not notice.
func TestCompressorFails(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	synctest.Test(t, func(t *testing.T) { testCompressorFails(t, path) })
}

func testCompressorFails(t *testing.T, path string) {
	c := &faulty{ext: ".gz"}
	c.fails.Store(1 << 30)
	var told, panics atomic.Int32
	f := open(t, path, file.Options{Compress: c, OnError: func(err error) {
		told.Add(1)
		if strings.Contains(err.Error(), "panicked") {
			panics.Add(1)
		}
		if !strings.Contains(err.Error(), "injected") || !strings.Contains(err.Error(), "stays as it is") {
			t.Errorf("OnError(%v)", err)
		}
	}})
	rotate(t, f, 1, 5000)
	eventually(t, "told", func() bool { return told.Load() > 0 })
	if got := rotated(t, path); len(got) != 1 || strings.HasSuffix(got[0], ".gz") {
		t.Errorf("after a failure: %v", got)
	}
	write(t, f, "goes on\n")
	c.fails.Store(1) // one panic, and then it is well
	eventually(t, "packed", func() bool { return f.Stats().Compressed == 1 })
	f.Told()
	if panics.Load() != 0 || told.Load() != 1 || f.Stats().Errors < 2 { // the panic came within the minute
		t.Errorf("told %d times, of %d panics, Stats %+v", told.Load(), panics.Load(), f.Stats())
	}
	if left := glob(t, path+"-*.part"); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// Writes do not wait for packing, Shutdown only as long as it may, and what was
// not packed is whole.
func TestShutdownDoesNotWaitForPacking(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	c := &faulty{ext: ".gz", gate: make(chan struct{}), hung: make(chan struct{})}
	f := open(t, path, file.Options{Compress: c})
	rotate(t, f, 1, 5000)
	<-c.hung
	for i := range 100 {
		write(t, f, fmt.Sprintf("line %d\n", i))
	}
	testkit.OK(t, f.Rotate())
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := f.Shutdown(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown = %v", err)
	}
	close(c.gate) // only now the background can leave off
	eventually(t, "the copy that was begun is gone", func() bool { return len(glob(t, path+"-*.part")) == 0 })
	if got := rotated(t, path); len(got) != 2 || strings.Contains(strings.Join(got, " "), ".gz") {
		t.Errorf("rotated %v", got)
	}
	// The next one packs them.
	f = open(t, path, file.Options{Compress: file.Gzip{}})
	testkit.OK(t, f.Close())
	if s := f.Stats(); s.Compressed != 2 {
		t.Errorf("Stats = %+v", s)
	}
}

// Close waits for the background.
func TestClosePacks(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode file.Mode) {
		path := filepath.Join(t.TempDir(), "log")
		f := open(t, path, file.Options{Mode: mode, Compress: file.Gzip{}, KeepCount: 2, CloseTimeout: time.Minute})
		rotate(t, f, 4, 100_000)
		testkit.OK(t, f.Close())
		got := rotated(t, path)
		if len(got) != 2 || !strings.HasSuffix(got[0], ".gz") || !strings.HasSuffix(got[1], ".gz") {
			t.Errorf("after Close: %v", got)
		}
	})
}

// What a crash has left is finished or removed by the next Open.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	const content = "one\ntwo\n"
	packed := func(s string) []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		io.WriteString(w, s)
		w.Close()
		return b.Bytes()
	}
	gz := packed(content)
	const plain = "log-20261121T080309.123456789Z-5f3a2c"
	for _, c := range []struct {
		name   string
		before map[string][]byte
		after  []string // with Compress nil
		pieces int      // left that were dealt with
	}{
		{"a copy was begun", map[string][]byte{plain: []byte(content), plain + ".gz.part": gz[:10]}, []string{plain}, 1},
		{"a copy was complete but not renamed", map[string][]byte{plain: []byte(content), plain + ".gz.part": gz}, []string{plain}, 1},
		{"a copy was renamed, the original not removed", map[string][]byte{plain: []byte(content), plain + ".gz": gz}, []string{plain + ".gz"}, 1},
		{"a copy that is torn", map[string][]byte{plain: []byte(content), plain + ".gz": gz[:len(gz)-3]}, []string{plain}, 1},
		{"a copy of something else", map[string][]byte{plain: []byte(content), plain + ".gz": packed("one\ntwx\n")}, []string{plain}, 1},
		{"a copy of the beginning", map[string][]byte{plain: []byte(content), plain + ".gz": packed("one\n")}, []string{plain}, 1},
		{"a copy of what the power cut has taken the end of", map[string][]byte{plain: []byte(content[:6]), plain + ".gz": gz}, []string{plain + ".gz"}, 1},
		{"a copy of what the power cut has taken", map[string][]byte{plain: nil, plain + ".gz": gz}, []string{plain + ".gz"}, 1},
		{"a torn copy of what the power cut has torn", map[string][]byte{plain: []byte(content + "thr"), plain + ".gz": gz[:len(gz)-3]}, []string{plain}, 1},
		{"torn by a power cut", map[string][]byte{plain: []byte(content + "thr")}, []string{plain}, 0},
		{"torn by a power cut within the first line", map[string][]byte{plain: []byte("thr")}, nil, 0},
		{"a copy of nothing", map[string][]byte{plain: []byte(content), plain + ".gz": nil}, []string{plain}, 1},
		{"a whole copy without original", map[string][]byte{plain + ".gz.part": gz}, []string{plain + ".gz"}, 1},
		{"a torn copy without original", map[string][]byte{plain + ".gz.part": gz[:10]}, nil, 1},
		{"all three", map[string][]byte{plain: []byte(content), plain + ".gz": gz, plain + ".gz.part": gz[:10]}, []string{plain + ".gz"}, 2},
		{"a name without a file", map[string][]byte{plain: nil}, nil, 0},
		{"nothing left", map[string][]byte{plain: []byte(content)}, []string{plain}, 0},
		{"a copy this File cannot read", map[string][]byte{plain: []byte(content), plain + ".zst": gz}, []string{plain, plain + ".zst"}, 0},
		{"a beginning this File cannot read", map[string][]byte{plain + ".zst.part": gz}, []string{plain + ".zst.part"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, compress := range []file.Compressor{nil, file.Gzip{}} {
				dir := memoryDir(t)
				for name, data := range c.before {
					testkit.OK(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
				}
				f := open(t, filepath.Join(dir, "log"), file.Options{KeepCount: 100, Compress: compress})
				testkit.OK(t, f.Close())
				want := slices.Clone(c.after)
				if compress != nil && len(want) == 1 && want[0] == plain {
					want[0] += ".gz"
				}
				var got []string
				for _, name := range glob(t, filepath.Join(dir, "log-*")) {
					got = append(got, filepath.Base(name))
				}
				if !slices.Equal(got, want) {
					t.Errorf("packing %v: left %v, want %v", compress != nil, got, want)
				}
				if s := f.Stats(); s.Recovered != uint64(c.pieces) {
					t.Errorf("packing %v: Stats = %+v, want %d recovered", compress != nil, s, c.pieces)
				}
				if len(want) == 1 && !strings.Contains(want[0], ".zst") {
					if _, contents := parts(t, filepath.Join(dir, "log"), nil); contents[0] != content {
						t.Errorf("packing %v: %q is left", compress != nil, contents[0])
					}
				}
			}
		})
	}
}

// Rotated files go to a folder of their own.
func TestFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder := filepath.Join(dir, "old")
	path := filepath.Join(dir, "log")
	if _, err := file.Open(path, file.Options{Folder: folder}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open with a missing folder = %v", err)
	}
	if _, err := file.Open(path, file.Options{Folder: path}); err == nil || !strings.Contains(err.Error(), "not a folder") {
		t.Errorf("Open with a file for a folder = %v", err)
	}
	if _, err := os.Stat("/dev/shm"); err == nil && !strings.HasPrefix(dir, "/dev/shm") {
		if _, err := file.Open(path, file.Options{Folder: "/dev/shm"}); err == nil || !strings.Contains(err.Error(), "another file system") {
			t.Errorf("Open with a folder on another file system = %v", err)
		}
	}
	testkit.OK(t, os.Mkdir(folder, 0o700))
	f := open(t, path, file.Options{Folder: folder, Compress: file.Gzip{}, KeepCount: 2})
	p := put(t, f, "placed\n")
	rotate(t, f, 2, 10)
	p.in(t, f, 7)
	testkit.OK(t, f.Close())
	if got := glob(t, filepath.Join(folder, "log-*.gz")); len(got) != 2 {
		t.Errorf("in the folder: %v", got)
	}
	if got := glob(t, path+"-*"); len(got) > 0 {
		t.Errorf("beside the file: %v", got)
	}
}

// OnRotated gets each rotated file in its last form, in order, before it may be
// removed, and may do with it what it likes.
func TestOnRotated(t *testing.T) {
	t.Parallel()
	for _, compress := range []file.Compressor{nil, file.Gzip{}} {
		path := filepath.Join(t.TempDir(), "log")
		var mu sync.Mutex
		var got []string
		f := open(t, path, file.Options{KeepCount: 1, Compress: compress, CloseTimeout: time.Minute, OnRotated: func(name string) {
			b, err := os.ReadFile(name)
			if compress != nil {
				if r, zerr := compress.NewReader(bytes.NewReader(b)); zerr == nil {
					b, err = io.ReadAll(r)
				}
			}
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			got = append(got, strings.TrimRight(string(b), ".\n"))
			if err := os.Chmod(name, 0o440); err != nil { // as who wants them read-only
				t.Error(err)
			}
			if len(got) == 3 {
				panic("what a callback does")
			}
		}})
		rotate(t, f, 10, 20)
		testkit.OK(t, f.Close())
		var want []string
		for i := range 10 {
			want = append(want, fmt.Sprintf("file %d", i))
		}
		if !slices.Equal(got, want) {
			t.Errorf("packing %v: called with %q, want %q", compress != nil, got, want)
		}
		if s := f.Stats(); s.Removed != 9 || !strings.Contains(s.LastError.Error(), "OnRotated panicked") {
			t.Errorf("packing %v: Stats = %+v", compress != nil, s)
		}
	}
}

// Nothing that a File has started runs on after Close, also of one that was
// shut down amid its work.
func TestCloseEndsGoroutines(t *testing.T) {
	running := func() bool {
		buf := make([]byte, 1<<20)
		stacks := string(buf[:runtime.Stack(buf, true)])
		return strings.Contains(stacks, "file.(*maintenance)") || strings.Contains(stacks, "file.(*File)")
	}
	eventually(t, "other tests are done", func() bool { return !running() })
	for i := range 10 {
		f := open(t, filepath.Join(t.TempDir(), "log"), file.Options{Every: time.Hour, Sync: file.SyncInterval, Compress: file.Gzip{}, KeepAge: time.Hour, CloseTimeout: time.Minute})
		f.ReopenOn(os.Interrupt)
		rotate(t, f, 3, 100)
		ctx, cancel := context.WithCancel(context.Background())
		if i%2 == 0 {
			cancel()
		}
		f.Shutdown(ctx)
		cancel()
		eventually(t, "all goroutines have ended", func() bool { return !running() })
	}
}
