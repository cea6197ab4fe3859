//go:build unix

package file_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/testkit"
)

// A process that is killed at any moment, in a Write, a rotation or the
// packing, has lost no line whose Write returned, and has left none twice.

const crashEnv = "ROLLWAY_FILE_TEST_CRASH" // PATH|MODE|FIRST LINE|LINES[|KIND OF powerOptions]

// crashOptions let Close compress all there is, and not what a busy disk lets it
// compress in a minute: 24 files are some 50 calls of fsync. What hangs ends with
// go test.
func crashOptions(mode file.Mode) file.Options {
	return file.Options{Mode: mode, MaxSize: 4000, Compress: file.Gzip{Level: 1}, CloseTimeout: time.Hour}
}

func crashLine(seq int) string {
	return fmt.Sprintf("%d %s\n", seq, strings.Repeat("x", seq*7%90))
}

// child is the process of another test, if the environment says so.
var child func()

// TestMain is the writing process if the environment says so.
func TestMain(m *testing.M) {
	if spec := os.Getenv(crashEnv); spec != "" {
		crashWriter(strings.Split(spec, "|"))
	}
	if child != nil {
		child()
	}
	flag.Parse()
	flag.Set("test.parallel", "8") // most tests wait, for the disk or another process
	os.Exit(m.Run())
}

// crashWriter writes lines and tells the number of each on standard output once
// its Write has returned.
func crashWriter(spec []string) {
	runtime.LockOSThread() // strace counts system calls of one thread
	mode, err0 := strconv.Atoi(spec[1])
	first, err1 := strconv.Atoi(spec[2])
	n, err2 := strconv.Atoi(spec[3])
	if len(spec) == 5 {
		if err := powerWriter(spec[0], spec[4], n); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	f, err := file.Open(spec[0], crashOptions(file.Mode(mode)))
	if err := errors.Join(err, err0, err1, err2); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for seq := first; seq < first+n; seq++ {
		lines := [][]byte{[]byte(crashLine(seq))}
		if seq%3 == 0 && seq+1 < first+n { // two in one call
			seq++
			lines = append(lines, []byte(crashLine(seq)))
		}
		if err := patientWrite(f, lines); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if _, err := os.Stdout.Write(binary.LittleEndian.AppendUint64(nil, uint64(seq))); err != nil {
			os.Exit(1)
		}
	}
	if err := f.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// patientWrite resumes where a write has failed: a disk may fail a few times.
func patientWrite(f *file.File, lines [][]byte) (err error) {
	for tries := 0; len(lines) > 0 && tries < 10; tries++ {
		var n int64
		if len(lines) == 1 {
			var m int
			m, err = f.Write(lines[0])
			n = int64(m)
		} else {
			n, err = writeBuffers(f, lines)
		}
		for len(lines) > 0 && n >= int64(len(lines[0])) {
			n -= int64(len(lines[0]))
			lines = lines[1:]
		}
		if n > 0 {
			return errors.New("a part of a line was taken")
		}
	}
	return err
}

// acked takes what crashWriter tells.
type acked struct{ n atomic.Int64 }

func (a *acked) Write(p []byte) (int, error) {
	if len(p)%8 != 0 {
		return 0, errors.New("a torn number") // pipes do not tear 8 bytes
	}
	for b := p; len(b) > 0; b = b[8:] {
		a.n.Store(int64(binary.LittleEndian.Uint64(b)) + 1)
	}
	return len(p), nil
}

// survivors wants the lines from 0 on, each once and in order, at least up to
// the acknowledged ones. It returns their number.
func survivors(t *testing.T, path string, acknowledged int) int {
	t.Helper()
	_, contents := parts(t, path, nil)
	data := strings.Join(contents, "")
	if i := strings.LastIndexByte(data, '\n') + 1; i < len(data) {
		data = data[:i] // the next Open cuts it
	}
	next := 0
	for line := range strings.Lines(data) {
		if line != crashLine(next) {
			t.Fatalf("line %.60q instead of number %d", line, next)
		}
		next++
	}
	if next < acknowledged {
		t.Fatalf("%d lines, but %d were acknowledged", next, acknowledged)
	}
	return next
}

// atRest wants nothing left of a crash once the series was opened and closed.
func atRest(t *testing.T, path string, lines int) {
	t.Helper()
	o := crashOptions(file.Buffered)
	o.OnError = orTold(t)
	f := open(t, path, o)
	testkit.OK(t, f.Close())
	if got := survivors(t, path, lines); got != lines {
		t.Errorf("%d lines, before the last Open there were %d", got, lines)
	}
	for _, name := range glob(t, path+"-*") {
		if !strings.HasSuffix(name, ".gz") {
			t.Errorf("left: %s", name)
		}
	}
}

// orTold returns an OnError that expects to be told what a crash has left.
func orTold(t *testing.T) func(error) {
	return func(err error) {
		for _, usual := range []string{"ended within a line", "as after a crash", "whose original is gone"} {
			if strings.Contains(err.Error(), usual) {
				return
			}
		}
		t.Errorf("OnError(%v)", err)
	}
}

func crashCommand(path string, mode file.Mode, first, n int, tell io.Writer, argv ...string) (*exec.Cmd, *bytes.Buffer) {
	argv = append(argv, os.Args[0])
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%d|%d|%d", crashEnv, path, mode, first, n))
	cmd.Stdout = tell
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	return cmd, &stderr
}

func killed(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// seedOf returns a seed, which it logs.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("ROLLWAY_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("ROLLWAY_SEED=%d for the same run", seed)
	return seed
}

func TestKilledAtRandom(t *testing.T) {
	t.Parallel()
	testkit.NoRace(t, "the process that is killed tells the detector nothing")
	eachMode(t, func(t *testing.T, mode file.Mode) { killedAtRandom(t, mode, 10) })
}

func TestKilledAtRandomLong(t *testing.T) {
	testkit.Nightly(t, testkit.Kills, "more moments of a kill")
	eachMode(t, func(t *testing.T, mode file.Mode) { killedAtRandom(t, mode, 200) })
}

func killedAtRandom(t *testing.T, mode file.Mode, tries int) {
	const perSeries = 10
	rng := rand.New(rand.NewPCG(seedOf(t), 0))
	var path string
	lines, rotations, leftovers := 0, 0, 0
	for try := range tries {
		if try%perSeries == 0 {
			path, lines = filepath.Join(fastDir(t, mode), "log"), 0
		}
		tell := &acked{}
		tell.n.Store(-1)
		cmd, stderr := crashCommand(path, mode, lines, 1<<30, tell)
		testkit.OK(t, cmd.Start())
		eventually(t, "a first line", func() bool { return tell.n.Load() >= 0 })
		time.Sleep(time.Duration(rng.IntN(20_000)) * time.Microsecond)
		testkit.OK(t, cmd.Process.Kill())
		if err := cmd.Wait(); !killed(err) {
			t.Fatalf("try %d: the writer ended with %v: %s", try, err, stderr)
		}
		was := lines
		lines = survivors(t, path, int(tell.n.Load()))
		if lines <= was {
			t.Fatalf("try %d: %d lines after %d", try, lines, was)
		}
		names := glob(t, path+"-*")
		leftovers += len(glob(t, path+"-*.part"))
		if try%perSeries == perSeries-1 {
			rotations += len(names)
			atRest(t, path, lines)
		}
	}
	t.Logf("%d kills, %d rotated files, %d killed while compressing", tries, rotations, leftovers)
	if rotations == 0 || mode == file.Buffered && tries > 100 && (rotations < tries || leftovers == 0) {
		t.Errorf("%d rotations and %d kills while compressing: this tests little", rotations, leftovers)
	}
}

// Two processes that write and rotate one path: each line is there once and
// whole. The second is killed in some rounds.
func TestTwoProcessesOnOnePath(t *testing.T) {
	t.Parallel()
	for round := range 4 {
		path := filepath.Join(memoryDir(t), "log")
		const lines, second = 1500, 1_000_000
		var tell [2]acked
		one, stderr1 := crashCommand(path, file.Buffered, 0, lines, &tell[0])
		two, stderr2 := crashCommand(path, file.Buffered, second, lines, &tell[1])
		testkit.OK(t, errors.Join(one.Start(), two.Start()))
		if round%2 == 1 {
			eventually(t, "the second is at work", func() bool { return tell[1].n.Load() > second+int64(round*100) })
			two.Process.Kill()
		}
		if err := one.Wait(); err != nil {
			t.Fatalf("%v: %s", err, stderr1)
		}
		if err := two.Wait(); err != nil && !killed(err) {
			t.Fatalf("%v: %s", err, stderr2)
		}
		f := open(t, path, crashOptions(file.Buffered)) // cuts and tidies up what the kill has left
		testkit.OK(t, f.Close())
		seen := map[string]int{}
		_, contents := parts(t, path, nil)
		for line := range strings.Lines(strings.Join(contents, "")) {
			seen[line]++
		}
		total := 0
		for w, first := range []int{0, second} {
			n := int(tell[w].n.Load()) - first
			if w == 0 && n != lines || n <= 0 {
				t.Errorf("round %d: writer %d has told of %d lines", round, w, n)
			}
			for seq := first; seq < first+lines; seq++ {
				switch c := seen[crashLine(seq)]; {
				case c == 1:
					total++
				case c > 1 || seq < first+n:
					t.Fatalf("round %d: line %d is there %d times", round, seq, c)
				}
			}
		}
		if total != len(seen) {
			t.Errorf("round %d: %d lines are none that were written", round, len(seen)-total)
		}
	}
}

// powerOptions are ways to write; each says how many first lines are safe when a
// number was told.
var powerOptions = map[string]file.Options{
	"each write":               {MaxSize: 2000, Sync: file.SyncEachWrite, Compress: file.Gzip{Level: 1}, CloseTimeout: time.Minute},
	"each write, without gzip": {MaxSize: 2000, Sync: file.SyncEachWrite, CloseTimeout: time.Minute},
	"by call":                  {MaxSize: 2000, Compress: file.Gzip{Level: 1}, CloseTimeout: time.Minute},
	"by interval":              {MaxSize: 2000, Sync: file.SyncInterval, SyncEvery: 2 * time.Millisecond, Compress: file.Gzip{Level: 1}, KeepPlain: 1, CloseTimeout: time.Minute},
	"pruned":                   {MaxSize: 2000, Sync: file.SyncEachWrite, Compress: file.Gzip{Level: 1}, KeepCount: 2, CloseTimeout: time.Minute},
}

// powerWriter writes lines and tells how many are safe.
func powerWriter(path, kind string, lines int) error {
	o := powerOptions[kind]
	f, err := file.Open(path, o)
	if err != nil {
		return err
	}
	for seq := range lines {
		if _, err := f.Write([]byte(crashLine(seq))); err != nil {
			return err
		}
		if o.Sync != file.SyncEachWrite {
			if seq%20 != 19 {
				continue
			}
			if err := f.Sync(); err != nil {
				return err
			}
		}
		if _, err := fmt.Printf("%d\n", seq+1); err != nil {
			return err
		}
	}
	return f.Close()
}
