package file_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/direct"
	"github.com/rollway/rollway/internal/smalldisk"
	"github.com/rollway/rollway/internal/testkit"
)

// giveBuffers writes rounds of buffers of numbered lines until n lines are written,
// and gives what was not taken again. After an error, which is want, it calls
// failed.
func giveBuffers(t *testing.T, f *file.File, want error, n int, failed func()) (lines, errs int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(uint64(n), 0))
	set, err := direct.NewMemorySet(3, 1<<20+64<<10)
	testkit.OK(t, err)
	defer set.Free()
	next := 0
	for next < n {
		var bufs [][]byte
		for i := range 1 + rng.IntN(3) {
			b := set.Bytes(i)[:0]
			size := 1 + rng.IntN(40_000)
			if rng.IntN(3) == 0 {
				size += 1 << 20 // for Direct to take as it is
			}
			for ; len(b) < size; next++ {
				b = fmt.Appendf(b, "%d %s.\n", next, strings.Repeat("x", rng.IntN(3000)))
			}
			bufs = append(bufs, b)
		}
		for tries := 0; len(bufs) > 0; tries++ {
			taken, err := writeBuffers(f, bufs)
			for len(bufs) > 0 && taken >= int64(len(bufs[0])) {
				taken -= int64(len(bufs[0]))
				bufs = bufs[1:]
			}
			if err == nil {
				if len(bufs) > 0 {
					t.Fatal("less than all, and no error")
				}
				break
			}
			if !errors.Is(err, want) || tries > 100 {
				t.Fatalf("WriteBuffers = %d, %v, want %v", taken, err, want)
			}
			if taken > 0 {
				if bufs[0][taken-1] != '\n' {
					t.Fatalf("a part of a line was taken: %.20q", bufs[0][max(0, taken-20):taken])
				}
				// The rest as a buffer of its own, which begins where one may.
				k := copy(bufs[0], bufs[0][taken:])
				bufs[0] = bufs[0][:k]
			}
			errs++
			failed()
		}
		if s := f.Stats(); s.Err() != nil || s.Pending != 0 || s.Written != uint64(next) {
			t.Fatalf("after %d lines: Stats %+v", next, s)
		}
	}
	return next, errs
}

// numbered wants lines from 0 on in the files, each once and in order, and returns
// how many there are.
func numbered(t *testing.T, data string) (next int) {
	t.Helper()
	for line := range strings.Lines(data) {
		text := strings.TrimRight(line, " \n")
		if text == "" {
			continue
		}
		var n int
		if _, err := fmt.Sscanf(text, "%d ", &n); err != nil || n != next || !strings.HasSuffix(text, ".") {
			t.Fatalf("line %d is %.60q", next, line)
		}
		next++
	}
	return next
}

// A disk that is full, now and then, on a file system that has Direct: after each
// error the file ends with a line, and it is written on when there is room.
func TestFullExt4(t *testing.T) {
	t.Parallel()
	dir := smalldisk.Ext4(t)
	if dir == "" {
		return
	}
	for _, mode := range modes {
		for _, policy := range []file.SyncPolicy{file.SyncNever, file.SyncEachWrite} {
			t.Run(fmt.Sprint(mode, " ", policy), func(t *testing.T) {
				path, ballast := filepath.Join(dir, "log"), filepath.Join(dir, "ballast")
				defer os.Remove(path)
				defer os.Remove(ballast)
				left := fillDisk(t, ballast) // first, or a reservation would be room enough
				f := open(t, path, file.Options{Mode: mode, Sync: policy, OnError: func(err error) { t.Errorf("OnError(%v)", err) }})
				lines, errs := giveBuffers(t, f, syscall.ENOSPC, 4000, func() {
					if data := read(t, path); data != "" && !strings.HasSuffix(data, "\n") || strings.Contains(data, "\x00") {
						t.Errorf("the file ends with %.20q", data[max(0, len(data)-20):])
					}
					left = max(0, left-300_001)
					testkit.OK(t, os.Truncate(ballast, left))
				})
				if err := f.Close(); err != nil {
					t.Errorf("Close = %v", err)
				}
				if got := numbered(t, read(t, path)); got != lines {
					t.Errorf("%d lines of %d", got, lines)
				}
				if s := f.Stats(); errs < 5 || s.Abandoned > 0 || s.Mode != mode || s.Failing {
					t.Errorf("%d errors, Stats %+v", errs, s)
				}
			})
		}
	}
}

// fillDisk makes a file that leaves 1500 KiB on the disk, or a little less, and
// returns its size.
func fillDisk(t *testing.T, ballast string) int64 {
	t.Helper()
	f, err := os.Create(ballast)
	testkit.OK(t, err)
	defer f.Close()
	var st syscall.Statfs_t
	testkit.OK(t, syscall.Fstatfs(int(f.Fd()), &st))
	size := int64(st.Bavail)*st.Bsize - 1500<<10
	if err := syscall.Fallocate(int(f.Fd()), 0, 0, size); err != nil {
		t.Fatalf("allocate %d bytes: %v", size, err)
	}
	return size
}

// The disk fills up: with a Failover no Write fails, and the lines come back to the
// first folder when there is room.
func TestFailoverFromAFullDisk(t *testing.T) {
	t.Parallel()
	dir := smalldisk.Mount(t, "size=200k")
	if dir == "" {
		return
	}
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			second := t.TempDir()
			path, other := filepath.Join(dir, mode.String()), filepath.Join(second, mode.String())
			smalldisk.Remount(t, dir, "size=200k")
			synctest.Test(t, func(t *testing.T) {
				var heard told
				f := open(t, path, file.Options{Mode: mode, Failover: second, OnError: heard.add})
				line := strings.Repeat("x", 999)
				for f.Stats().Failovers == 0 {
					write(t, f, line+"\n")
				}
				for range 3 { // not twice in a minute, and it does not lose a line if it is in vain
					time.Sleep(61 * time.Second)
					for range 3 {
						goesTo(t, f, other, line)
					}
				}
				smalldisk.Remount(t, dir, "size=1m")
				time.Sleep(61 * time.Second)
				goesTo(t, f, path, line)
				if err := f.Close(); err != nil {
					t.Error(err)
				}
				s := f.Stats()
				if n := len(read(t, path)) + len(read(t, other)); n != int(s.Written)*1000 || s.Failovers != 4 || !errors.Is(s.LastError, syscall.ENOSPC) {
					t.Errorf("%d bytes, Stats %+v, told %s", n, s, heard.String())
				}
				ledger(f).CheckSettled(t, int(s.Written), int(s.Written))
				if err := os.Remove(path); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// With both folders full a Write fails, and the caller gives the rest again: each
// line is there once.
func TestBothFoldersAreFull(t *testing.T) {
	t.Parallel()
	dir := smalldisk.Mount(t, "size=100k")
	if dir == "" {
		return
	}
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			path, other, second := twoFolders(t, filepath.Join(dir))
			defer os.RemoveAll(filepath.Dir(path))
			defer os.RemoveAll(second)
			smalldisk.Remount(t, dir, "size=100k")
			f := open(t, path, file.Options{Mode: mode, Failover: second})
			lines, errs := giveBuffers(t, f, syscall.ENOSPC, 400, func() {
				smalldisk.Remount(t, dir, "size=16m")
			})
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			data := read(t, path) + read(t, other) // one after the other: it does not go home so soon
			if got := numbered(t, data); got != lines || errs == 0 {
				t.Errorf("%d lines of %d, %d errors", got, lines, errs)
			}
			ledger(f).CheckSettled(t, lines, lines)
		})
	}
}

// The first disk takes no writes any more before Open, as an ext4 that has met an
// error and a program that starts again: lines go to the failover, and by Reopen
// back. It becomes so under the File as well.
func TestFailoverFromAReadOnlyDisk(t *testing.T) {
	t.Parallel()
	dir := smalldisk.Ext4(t)
	if dir == "" {
		return
	}
	remount := func(flags uintptr) {
		t.Helper()
		testkit.OK(t, syscall.Mount("", dir, "", syscall.MS_REMOUNT|flags, ""))
	}
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			second := filepath.Join(filepath.Dir(dir), mode.String())
			testkit.OK(t, os.Mkdir(second, 0o700))
			path, other := filepath.Join(dir, mode.String()), filepath.Join(second, mode.String())
			o := file.Options{Mode: mode}
			remount(syscall.MS_RDONLY)
			defer remount(0)
			if f, err := file.Open(path, o); err == nil {
				f.Close()
				t.Error("Open without a failover = nil")
			}
			var heard told
			o.Failover, o.OnError = second, heard.add
			f := open(t, path, o)
			goesTo(t, f, other, "away")
			f.Told()
			if s := heard.String(); !strings.Contains(s, "read-only file system") || !strings.Contains(s, "the lines go to "+other) {
				t.Errorf("OnError got %s", s)
			}
			remount(0)
			if err := f.Reopen(); err != nil {
				t.Errorf("Reopen = %v", err)
			}
			goesTo(t, f, path, "home")
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			want(t, path, "home\n")
			want(t, other, "away\n")
			ledger(f).CheckSettled(t, 2, 2)
			if s := f.Stats(); s.Failovers != 1 {
				t.Errorf("Stats %+v", s)
			}
		})
	}
}

// The power fails under the first disk, while lines come: with SyncEachWrite, what
// counts as written is there when it is back, and no Write fails.
func TestFailoverAtAPowerCut(t *testing.T) {
	t.Parallel()
	dir := smalldisk.Ext4(t)
	if dir == "" {
		return
	}
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			second := filepath.Join(filepath.Dir(dir), mode.String())
			testkit.OK(t, os.Mkdir(second, 0o700))
			path, other := filepath.Join(dir, mode.String()), filepath.Join(second, mode.String())
			var heard told
			f := open(t, path, file.Options{Mode: mode, Sync: file.SyncEachWrite, MaxSize: 30_000, Failover: second, OnError: heard.add})
			line := 0
			some := func() {
				for range 100 {
					write(t, f, fmt.Sprintf("%d %s.\n", line, strings.Repeat("x", 900)))
					line++
				}
			}
			some()
			smalldisk.CutPower(t, dir)
			some()
			if s := f.Stats(); s.Failovers != 1 || s.Path != other {
				t.Errorf("Stats %+v", s)
			}
			smalldisk.RestorePower(t, dir)
			if err := f.Reopen(); err != nil {
				t.Errorf("Reopen = %v", err)
			}
			some()
			if s := f.Stats(); s.Path != path {
				t.Errorf("at the end the lines went to %s", s.Path)
			}
			if err := f.Close(); err != nil {
				t.Errorf("Close = %v", err)
			}
			// What was being forced out as the power failed may be there twice.
			f.Told()
			twice := strings.Contains(heard.String(), "are written again elsewhere")
			once(t, all(t, path)+all(t, other), line, twice)
			ledger(f).CheckSettled(t, line, line)
		})
	}
}

// once wants lines 0 to n-1, each once, in any order.
func once(t *testing.T, data string, n int, twice bool) {
	t.Helper()
	seen := make([]int, n)
	for l := range strings.Lines(data) {
		var i int
		if _, err := fmt.Sscanf(l, "%d ", &i); err != nil || i >= n || !strings.HasSuffix(l, ".\n") {
			t.Fatalf("line %.60q", l)
		}
		seen[i]++
	}
	for i, k := range seen {
		if k == 0 || k > 1 && !twice {
			t.Errorf("line %d is there %d times", i, k)
		}
	}
}

// Calls of the system that fail, once or again and again, with a failover: no line
// is lost, torn or there twice, and what happens is what is meant to.
func TestInjectedFailover(t *testing.T) {
	t.Parallel()
	testkit.NoRace(t, "the process under strace tells the detector nothing")
	strace := testkit.Strace(t)
	for mode, injections := range map[file.Mode]map[string]string{
		file.Direct: { // what must have happened at least once, or never ("-")
			"pwritev2:error=EINTR:when=2+3":      "-Abandoned",
			"pwritev2:error=EIO:when=3+4":        "Abandoned",
			"pwritev2:error=EIO:when=5..30":      "Failovers",
			"pwritev2:error=EUCLEAN:when=3+4":    "Abandoned",
			"pwritev2:error=ENOTCONN:when=5..30": "Failovers",
			"pwritev2:error=ENOSPC:when=5..6":    "Failovers",
			"pwritev2:retval=0:when=2+3":         "-Abandoned",
			"ftruncate:error=EIO:when=2+3":       "-Failovers",
			"fallocate:error=ENOSPC":             "-Abandoned",
			"renameat2:error=EIO":                "-Rotations",
		},
		file.Buffered: {
			"writev:error=EIO:when=3+4":           "Abandoned",
			"writev:error=EIO:when=5..30":         "Failovers",
			"writev:error=ENOSPC:when=5..6":       "Failovers",
			"writev:error=EINTR:when=2+3":         "-Abandoned",
			"fdatasync:error=EIO:when=2+3":        "Abandoned",
			"fdatasync:error=EIO:when=5..30":      "Failovers",
			"writev,fdatasync:error=EIO:when=5+3": "Abandoned",
			"renameat2:error=EIO:when=1+2":        "-Abandoned",
			"flock:error=ENOLCK":                  "-Abandoned",
		},
	} {
		for inject, meant := range injections {
			t.Run(fmt.Sprint(mode, " ", inject), func(t *testing.T) {
				t.Parallel()
				calls, _, _ := strings.Cut(inject, ":")
				name, never := strings.CutPrefix(meant, "-")
				// strace counts the calls of each thread, and on which one a goroutine
				// makes its calls is up to the scheduler: a fault may meet none.
				for try := 1; ; try++ {
					out := writeUnder(t, mode, strace, "-f", "-qq", "-o", os.DevNull, "-e", "trace="+calls, "-e", "inject="+inject)
					some := strings.Contains(out, "happened: "+name+"\n")
					if some == never && (never || try == 10) {
						t.Fatalf("%s, in try %d:\n%s", meant, try, out)
					}
					if some != never {
						return
					}
				}
			})
		}
	}
}

const injectedEnv = "ROLLWAY_FILE_TEST_INJECTED" // PATH|FAILOVER|MODE

const injectedLines = 360

func init() {
	if spec := os.Getenv(injectedEnv); spec != "" {
		child = func() {
			if err := injectedWriter(strings.Split(spec, "|")); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
}

// writeUnder runs injectedWriter under a command and checks what it has written.
func writeUnder(t *testing.T, mode file.Mode, argv ...string) (output string) {
	t.Helper()
	path, other, second := twoFolders(t, filepath.Join(fastDir(t, mode)))
	defer os.RemoveAll(filepath.Dir(path))
	defer os.RemoveAll(second)
	cmd := exec.Command(argv[0], append(argv[1:], os.Args[0])...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%s|%d", injectedEnv, path, second, mode))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	once(t, all(t, path)+all(t, other), injectedLines, strings.Contains(string(out), "are written again elsewhere"))
	return string(out)
}

// injectedWriter writes lines, several buffers at a time, and prints what happened.
func injectedWriter(spec []string) error {
	mode, err := strconv.Atoi(spec[2])
	if err != nil {
		return err
	}
	f, err := file.Open(spec[0], file.Options{
		Mode: file.Mode(mode), MaxSize: 60_000, Sync: file.SyncEachWrite, Failover: spec[1], CloseTimeout: time.Minute,
		OnError: func(err error) { fmt.Println("told:", err) },
	})
	if err != nil {
		return err
	}
	for i := 0; i < injectedLines; i += 6 {
		var bufs [][]byte
		for k := range 6 {
			bufs = append(bufs, fmt.Appendf(nil, "%d %s.\n", i+k, strings.Repeat("x", (i+k)*7%500)))
		}
		for tries := 0; len(bufs) > 0; tries++ {
			n, err := writeBuffers(f, bufs)
			if err != nil && tries == 500 { // each thread has its own count of failed calls
				return err
			}
			for len(bufs) > 0 && n >= int64(len(bufs[0])) {
				n -= int64(len(bufs[0]))
				bufs = bufs[1:]
			}
			if n > 0 {
				return errors.New("a part of a line was taken")
			}
		}
	}
	if err := f.Close(); err != nil {
		fmt.Println("Close:", err)
	}
	s := f.Stats()
	if err := s.Err(); err != nil || s.Written != injectedLines {
		return fmt.Errorf("%w, Stats %+v", err, s)
	}
	for name, n := range map[string]uint64{"Abandoned": s.Abandoned, "Failovers": s.Failovers, "Rotations": s.Rotations} {
		if n > 0 {
			fmt.Printf("happened: %s\n", name)
		}
	}
	return nil
}
