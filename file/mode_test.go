package file_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/direct"
	"github.com/rollway/rollway/internal/testkit"
	"github.com/rollway/rollway/slab"
)

// Where no file can be written in a mode, Open says so.
func TestModeOfTheSystem(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	for _, mode := range append(modes, -1, 3) {
		f, err := file.Open(path, file.Options{Mode: mode})
		works := mode == file.Buffered || runtime.GOOS == "linux" && (mode == file.Direct || mode == file.Uncached) || runtime.GOOS == "darwin" && mode == file.Direct
		switch {
		case works != (err == nil):
			t.Errorf("Open with Mode %v = %v", mode, err)
		case works:
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		case !strings.Contains(err.Error(), "Options.Mode") || !strings.Contains(err.Error(), mode.String()):
			t.Errorf("Open with Mode %v = %v", mode, err)
		}
	}
}

// The names are those of package direct, whose values a Mode has.
func TestModeString(t *testing.T) {
	for mode, want := range map[file.Mode]direct.Mode{file.Buffered: direct.Buffered, file.Direct: direct.Direct, file.Uncached: direct.Uncached, 7: 7} {
		if direct.Mode(mode) != want || mode.String() != want.String() {
			t.Errorf("%v is %v", mode, want)
		}
	}
}

// What is not a regular file is written Buffered only.
func TestModeWantsARegularFile(t *testing.T) {
	for _, mode := range modes[1:] {
		need(t, mode)
		for _, path := range []string{os.DevNull, "/dev/stderr"} {
			if _, err := file.Open(path, file.Options{Mode: mode}); err == nil || !strings.Contains(err.Error(), "use Options.Mode Buffered") {
				t.Errorf("Open(%s) with Mode %v = %v", path, mode, err)
			}
		}
	}
}

// A File with Direct has its path for itself, in either order, and until it
// is closed; a rotated file is nobody's.
func TestDirectSharesWithNobody(t *testing.T) {
	t.Parallel()
	need(t, file.Direct)
	for _, pair := range [][2]file.Mode{{file.Direct, file.Direct}, {file.Direct, file.Buffered}, {file.Direct, file.Uncached}, {file.Buffered, file.Direct}} {
		t.Run(fmt.Sprint(pair), func(t *testing.T) {
			need(t, pair[1])
			t.Parallel()
			path := filepath.Join(t.TempDir(), "log")
			synctest.Test(t, func(t *testing.T) { // the second waits for a moment
				first := open(t, path, file.Options{Mode: pair[0]})
				write(t, first, "1\n")
				for range 2 {
					f, err := file.Open(path, file.Options{Mode: pair[1]})
					if err == nil {
						f.Close()
						t.Fatal("two have the path")
					}
					for _, want := range []string{path, "Options.Mode Direct", "Options.Mode Buffered", "a path for each"} {
						if !strings.Contains(err.Error(), want) {
							t.Errorf("the error %q does not tell of %q", err, want)
						}
					}
					testkit.OK(t, errors.Join(first.Rotate(), first.Reopen()))
					write(t, first, "2\n")
				}
				testkit.OK(t, first.Close())
				f := open(t, path, file.Options{Mode: pair[1]})
				write(t, f, "3\n")
				want(t, path, "2\n3\n")
				ledger(first).CheckSettled(t, 3, 3)
			})
		})
	}
}

// Another program cuts the file, or appends to it: the next Write sees it, goes
// on at the new end, and says that this is not supported.
func TestDirectSeesWhatOthersDo(t *testing.T) {
	need(t, file.Direct)
	path := filepath.Join(t.TempDir(), "log")
	var heard told
	f := open(t, path, file.Options{Mode: file.Direct, NoFollow: true, OnError: heard.add})
	long := strings.Repeat("x", 5000) + "\n"
	write(t, f, long+long)
	testkit.OK(t, os.Truncate(path, 5001))
	write(t, f, "after a cut\n")
	want(t, path, long+"after a cut\n")
	testkit.OK(t, os.Truncate(path, 0))
	_, _, offset, err := f.Prepare(6)
	if err != nil || offset != 0 {
		t.Errorf("Prepare = %d, %v, want 0", offset, err)
	}
	write(t, f, "empty\n")
	other, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	testkit.OK(t, err)
	defer other.Close()
	write(t, other, long+"torn")
	write(t, f, "mine\n")
	want(t, path, "empty\n"+long+"mine\n")
	if err := os.Truncate(path, 8); err != nil { // within a line
		t.Fatal(err)
	}
	write(t, f, "last\n")
	want(t, path, "empty\nlast\n")
	testkit.OK(t, os.Truncate(path, 6))
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	want(t, path, "empty\n")
	f.Told()
	all := heard.String()
	if strings.Count(all, "copytruncate") != 1 || strings.Count(all, "someone else writes") != 1 || strings.Count(all, "within a line") != 2 || f.Stats().Truncations != 4 {
		t.Errorf("told %s, Stats %+v", all, f.Stats())
	}
	ledger(f).CheckSettled(t, 6, 6)
}

// What stands after the last line end, spaces too, is a torn line, and the next
// Open cuts it, in any mode.
func TestDirectLeftoverIsCut(t *testing.T) {
	for _, mode := range modes {
		need(t, mode)
		path := filepath.Join(t.TempDir(), "log")
		testkit.OK(t, os.WriteFile(path, []byte("line\n"+strings.Repeat(" ", 507)), 0o600))
		f := open(t, path, file.Options{Mode: mode})
		want(t, path, "line\n")
		write(t, f, "next\n")
		want(t, path, "line\nnext\n")
		if s := f.Stats(); s.CutBytes != 507 {
			t.Errorf("%v: Stats %+v", mode, s)
		}
	}
}

// Who reads the file beside a slab.Writer sees lines, in any mode: no part of
// one but at the very end, and bytes 0 only for the moment that Direct tells of.
func TestReadersBesideTheFile(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			need(t, mode)
			t.Parallel()
			path := filepath.Join(t.TempDir(), "log")
			f := open(t, path, file.Options{Mode: mode})
			w, err := slab.New(f, slab.Options{Full: slab.Block, FlushInterval: time.Millisecond, CloseTimeout: time.Minute})
			testkit.OK(t, err)
			var stop atomic.Bool
			wrote := make(chan int)
			go func() {
				n := 0
				for ; !stop.Load(); n++ {
					if _, err := fmt.Fprintf(w, "begin %d %s end\n", n, strings.Repeat("x", n*131%3000)); err != nil {
						t.Error(err)
					}
					if n%5 == 0 {
						time.Sleep(time.Millisecond)
					}
				}
				wrote <- n
			}()
			moments := 0
			for range 15 {
				from := w.Stats().Written
				eventually(t, "more lines", func() bool { return w.Stats().Written > from })
				eventually(t, "whole lines", func() bool {
					bad := blemish(read(t, path))
					if bad == "" {
						return true
					}
					if moments++; mode != file.Direct {
						t.Fatalf("a reader saw %s", bad)
					}
					return false // for a moment
				})
			}
			stop.Store(true)
			n := <-wrote
			testkit.OK(t, w.Close())
			if all := read(t, path); strings.Count(all, "\n") != n || !strings.HasSuffix(all, "\n") || blemish(all) != "" {
				t.Errorf("%d lines of %d in the end, %s", strings.Count(all, "\n"), n, blemish(all))
			}
			ledger(f).CheckSettled(t, n, n)
			t.Logf("%d reads had to be done again", moments)
		})
	}
}

// blemish returns the part of data, up to its last line end, that is not a line of
// TestReadersBesideTheFile.
func blemish(data string) string {
	if strings.Contains(data, "\x00") {
		return "a byte 0"
	}
	for line := range strings.Lines(data[:strings.LastIndexByte(data, '\n')+1]) {
		if !strings.HasPrefix(line, "begin ") || !strings.HasSuffix(line, " end\n") {
			return fmt.Sprintf("a torn line %.60q", line)
		}
	}
	return ""
}
