package file_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/slab"
)

// modeEnv names the mode in which a child runs tests of this package again.
const modeEnv = "ROLLWAY_FILE_TEST_MODE"

var modes = []file.Mode{file.Buffered, file.Direct, file.Uncached}

// toldMode is the mode of modeEnv.
func toldMode() file.Mode {
	for _, m := range modes {
		if os.Getenv(modeEnv) == m.String() {
			return m
		}
	}
	return file.Buffered
}

// openAsTold is file.Open in the mode of modeEnv, unless o has one, with time to
// sync and to close while the disk is busy too.
func openAsTold(path string, o file.Options) (*file.File, error) {
	if o.Mode == file.Buffered {
		o.Mode = toldMode()
	}
	if o.CloseTimeout == 0 {
		o.CloseTimeout = time.Minute
	}
	return file.Open(path, o)
}

// again are the tests that TestModes runs in another mode. Uncached is another
// call to append with; Direct is another way to know where the file ends.
var again = map[file.Mode][]string{
	file.Uncached: {
		"TestLineWriterModes", "TestEverythingAtOnce", "TestTruncatedFile", "TestTornTailIsCut",
		"TestPrepareAndHolds", "TestFileSizeLimit", "TestFullDisk", "TestTwoFilesOnOnePath", "TestKilledAtRandom",
	},
	file.Direct: {
		"TestLineWriterModes", "TestEverythingAtOnce", "TestTruncatedFile", "TestTornTailIsCut",
		"TestPrepareAndHolds", "TestHoldsInRenamedFile", "TestPreparePins", "TestFileSizeLimit", "TestFullDisk", "TestFullDiskWhileRotating",
		"TestRotationOnFullDisk", "TestWriteGoesToOneFile", "TestRotateBySize", "TestRotateByInterval", "TestRotationThatFails",
		"TestRotationBehindSymbolicLink", "TestRotationKeepsPermissionsAndOwner", "TestKeepSize", "TestKeepCount", "TestCompress",
		"TestClosePacks", "TestLink", "TestFollowsMovedFile", "TestFollowsRemovedFile", "TestReopenOn", "TestFailedSyncSticks",
		"TestSyncPolicy", "TestSyncByInterval", "TestNoDescriptorIsLeft", "TestCloseEndsGoroutines", "TestLogrotate",
		"TestKilledAtRandom", "TestKilledInEachSystemCall", "TestFailingSystemCalls",
	},
}

// The contract in the other modes: the same tests, in a child for each.
func TestModes(t *testing.T) {
	for mode, names := range again {
		t.Run(mode.String(), func(t *testing.T) {
			need(t, mode)
			t.Parallel()
			cmd := exec.Command(os.Args[0], "-test.run=^("+strings.Join(names, "|")+")$", "-test.skip=/fsync each write$", "-test.v")
			cmd.Env = append(os.Environ(), modeEnv+"="+mode.String())
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, failedOf(string(out)))
			}
			for _, name := range names {
				if runtime.GOOS == "linux" && !bytes.Contains(out, []byte("--- PASS: "+name+" ")) && !bytes.Contains(out, []byte("--- SKIP: "+name+" ")) {
					t.Errorf("%s did not run", name)
				}
			}
		})
	}
}

// failedOf returns what go test -v printed of tests that did not pass.
func failedOf(out string) string {
	var failed strings.Builder
	var test, said string
	done := func() {
		if !strings.Contains(said, "--- PASS: "+test+" ") && !strings.Contains(said, "--- SKIP: "+test+" ") {
			failed.WriteString(said)
		}
		said = ""
	}
	for line := range strings.Lines(out) {
		if name, is := strings.CutPrefix(line, "=== RUN   "); is && !strings.Contains(name, "/") {
			done()
			test = strings.TrimSpace(name)
		}
		said += line
	}
	done()
	return failed.String()
}

// need skips where no file of the system can be written in the mode.
func need(t testing.TB, mode file.Mode) {
	t.Helper()
	if mode == file.Uncached && runtime.GOOS != "linux" || mode == file.Direct && runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skipf("%v is not for %s, which TestModeOfTheSystem is about", mode, runtime.GOOS)
	}
}

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

// What is not a regular file is written Buffered only.
func TestModeWantsARegularFile(t *testing.T) {
	for _, mode := range modes[1:] {
		need(t, mode)
		for _, path := range []string{os.DevNull, "/dev/stderr"} {
			if _, err := file.Open(path, file.Options{Mode: mode}); err == nil || !strings.Contains(err.Error(), "Options.Mode Buffered only") {
				t.Errorf("Open(%s) with Mode %v = %v", path, mode, err)
			}
		}
	}
}

// A File with Direct has its path for itself, whoever came first, and until it
// is closed; a rotated file is nobody's.
func TestDirectSharesWithNobody(t *testing.T) {
	need(t, file.Direct)
	for _, pair := range [][2]file.Mode{{file.Direct, file.Direct}, {file.Direct, file.Buffered}, {file.Direct, file.Uncached}, {file.Buffered, file.Direct}} {
		t.Run(fmt.Sprint(pair), func(t *testing.T) {
			need(t, pair[1])
			t.Parallel()
			path := filepath.Join(t.TempDir(), "log")
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
				if err := errors.Join(first.Rotate(), first.Reopen()); err != nil {
					t.Fatal(err)
				}
				write(t, first, "2\n")
			}
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			f := open(t, path, file.Options{Mode: pair[1]})
			write(t, f, "3\n")
			want(t, path, "2\n3\n")
			ledger(first).CheckSettled(t, 3, 3)
		})
	}
}

// Another program cuts the file, or appends to it: the next Write sees it, goes
// on at the new end, and says that this is not supported.
func TestDirectSeesWhatOthersDo(t *testing.T) {
	need(t, file.Direct)
	path := filepath.Join(t.TempDir(), "log")
	var notices []string
	f := open(t, path, file.Options{Mode: file.Direct, CheckEvery: time.Hour, OnNotice: func(s string) { notices = append(notices, s) }})
	long := strings.Repeat("x", 5000) + "\n"
	write(t, f, long+long)
	if err := os.Truncate(path, 5001); err != nil {
		t.Fatal(err)
	}
	write(t, f, "after a cut\n")
	want(t, path, long+"after a cut\n")
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	_, _, offset, err := f.Prepare(6)
	if err != nil || offset != 0 {
		t.Errorf("Prepare = %d, %v, want 0", offset, err)
	}
	write(t, f, "empty\n")
	other, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	write(t, other, long)
	write(t, f, "mine\n")
	want(t, path, "empty\n"+long+"mine\n")
	if len(notices) != 3 || f.Stats().Truncations != 2 || !strings.Contains(notices[0], "copytruncate") || !strings.Contains(notices[2], "someone else writes") {
		t.Errorf("notices %q, Stats %+v", notices, f.Stats())
	}
	ledger(f).CheckSettled(t, 5, 5)
}

// What stands behind the last line end, spaces too, is a torn line, and the next
// Open cuts it, in any mode.
func TestDirectLeftoverIsCut(t *testing.T) {
	for _, mode := range modes {
		need(t, mode)
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, []byte("line\n"+strings.Repeat(" ", 507)), 0o600); err != nil {
			t.Fatal(err)
		}
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
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			need(t, mode)
			path := filepath.Join(t.TempDir(), "log")
			f := open(t, path, file.Options{Mode: mode})
			w, err := slab.New(f, slab.Options{FlushInterval: time.Millisecond, CloseDestination: true, CloseTimeout: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
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
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if all := read(t, path); strings.Count(all, "\n") != n || !strings.HasSuffix(all, "\n") || blemish(all) != "" {
				t.Errorf("%d lines of %d in the end, %s", strings.Count(all, "\n"), n, blemish(all))
			}
			ledger(f).CheckSettled(t, n, n)
			t.Logf("%d reads had to be done again", moments)
		})
	}
}

// blemish says what of data, up to its last line end, is no line that
// TestReadersBesideTheFile writes.
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
