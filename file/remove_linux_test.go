package file_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/testkit"
)

// bigLine is more than is released at once.
func bigLine(pieces int) string {
	return strings.Repeat("x", pieces*file.ReleasePiece+8000-1) + "\n"
}

// A large rotated file loses its name at once, and its blocks in pieces with pauses
// between, when it is removed and when it was compressed. Close does not wait for
// the pauses.
func TestRemoveInPieces(t *testing.T) { // not in parallel: a process that is started inherits files for a moment
	for name, o := range map[string]file.Options{
		"removed":    {KeepSize: 1000},
		"compressed": {Compress: file.Gzip{Level: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log")
			synctest.Test(t, func(t *testing.T) {
				f := open(t, path, o)
				var mu sync.Mutex
				var sizes []int64
				f.SetFree(func(g *os.File, piece int64) (bool, error) {
					mu.Lock()
					defer mu.Unlock()
					done, err := disk.Free(g, piece)
					if info, statErr := g.Stat(); !done && statErr == nil {
						sizes = append(sizes, info.Size())
					}
					return done, err
				})
				write(t, f, bigLine(3))
				testkit.OK(t, f.Rotate())
				synctest.Wait()
				if names := glob(t, path+"-*"); slices.ContainsFunc(names, func(n string) bool { return !strings.HasSuffix(n, ".gz") }) {
					t.Errorf("left: %v", names)
				}
				time.Sleep(time.Second)
				const piece = file.ReleasePiece
				mu.Lock()
				if want := []int64{2*piece + 8000, piece + 8000, 8000}; !slices.Equal(sizes, want) {
					t.Errorf("cut to %v, want %v", sizes, want)
				}
				mu.Unlock()
				write(t, f, bigLine(6))
				testkit.OK(t, f.Rotate())
				synctest.Wait()
				begin := time.Now()
				if err := f.Close(); err != nil {
					t.Error(err)
				}
				if took := time.Since(begin); took > 10*time.Millisecond {
					t.Errorf("Close took %v", took)
				}
			})
		})
	}
}

// Who reads a file that is removed, or has given it another name, keeps all of it.
func TestRemoveLeavesToOthers(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	f := open(t, path, file.Options{OnRotated: func(string) {}})
	inUse := func(g *os.File, piece int64) (bool, error) {
		done, err := disk.Free(g, piece)
		if !done && err == nil {
			t.Error("it was cut")
		}
		return done, err
	}
	f.SetFree(inUse)
	read1, link2 := "", ""
	for _, name := range []*string{&read1, &link2} {
		write(t, f, bigLine(2))
		testkit.OK(t, f.Rotate())
		*name = rotated(t, path)[len(rotated(t, path))-1]
	}
	reader, err := os.Open(read1)
	testkit.OK(t, err)
	defer reader.Close()
	testkit.OK(t, errors.Join(os.Link(link2, path+".kept"), f.Close()))
	f = open(t, path, file.Options{KeepSize: 1})
	f.SetFree(inUse)
	eventually(t, "both are removed", func() bool { return f.Stats().Removed == 2 })
	if _, err := os.Stat(read1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Stat = %v", err)
	}
	if got, err := io.ReadAll(reader); string(got) != bigLine(2) || err != nil {
		t.Errorf("the reader gets %d bytes, %v", len(got), err)
	}
	want(t, path+".kept", bigLine(2))
}

// A rotation that fails, as no file can be opened, leaves the file at its path and
// in use, and is tried again a second later.
func TestRotationWithoutDescriptors(t *testing.T) {
	for _, mode := range modes { // not in parallel: nobody else may open a file either
		path := filepath.Join(t.TempDir(), "log")
		synctest.Test(t, func(t *testing.T) {
			var heard told
			f := open(t, path, file.Options{Mode: mode, MaxSize: 14_000, NoFollow: true, OnError: heard.add})
			line := strings.Repeat("x", 5999) + "\n"
			write(t, f, line)
			write(t, f, line)
			first := f.Current()
			var limit syscall.Rlimit
			testkit.OK(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
			none := limit
			none.Cur = 0
			testkit.OK(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none))
			for range 3 {
				write(t, f, line)
				time.Sleep(300 * time.Millisecond)
			}
			testkit.OK(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
			f.Told()
			if s := heard.String(); strings.Count(s, "the file in use is written on") != 1 || f.Current() != first {
				t.Errorf("heard %s", s)
			}
			if names := glob(t, path+"-*"); len(names) > 0 || !bytes.Equal([]byte(read(t, path)), bytes.Repeat([]byte(line), 5)) {
				t.Errorf("%v, and %d bytes at the path", names, len(read(t, path)))
			}
			time.Sleep(200 * time.Millisecond)
			write(t, f, "last\n")
			if names := glob(t, path+"-*"); len(names) != 1 || read(t, path) != "last\n" || f.Stats().Rotations != 1 {
				t.Errorf("%v, Stats %+v", names, f.Stats())
			}
			ledger(f).CheckSettled(t, 6, 6)
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
