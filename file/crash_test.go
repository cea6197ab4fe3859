//go:build unix

package file_test

import (
	"bytes"
	"encoding/binary"
	"errors"
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
)

// A process that is killed at any moment, in a Write, a rotation or the
// packing, has lost no line whose Write returned, and has left none twice.

const crashEnv = "ROLLWAY_FILE_TEST_CRASH" // PATH|FIRST LINE|LINES, which may be without end[|MODE]

// crashOptions let Close pack all there is, and not what a busy disk lets it pack
// in a minute: 24 files are some 50 calls of fsync. What hangs ends with go test.
var crashOptions = file.Options{MaxSize: 4000, Compress: file.Gzip{Level: 1}, CloseTimeout: time.Hour}

func crashLine(seq int) string {
	return fmt.Sprintf("%d %s\n", seq, strings.Repeat("x", seq*7%90))
}

// TestMain is the writing process if the environment says so.
func TestMain(m *testing.M) {
	if spec := os.Getenv(crashEnv); spec != "" {
		crashWriter(strings.Split(spec, "|"))
	}
	os.Exit(m.Run())
}

// crashWriter writes lines and tells the number of each on standard output once
// its Write has returned.
func crashWriter(spec []string) {
	runtime.LockOSThread() // strace counts system calls of one thread
	first, err1 := strconv.Atoi(spec[1])
	n, err2 := strconv.Atoi(spec[2])
	if len(spec) == 4 {
		if err := powerWriter(spec[0], spec[3], n); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	f, err := openAsTold(spec[0], crashOptions)
	if err := errors.Join(err, err1, err2); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for seq := first; seq < first+n; seq++ {
		if err := patientWrite(f, crashLine(seq)); err != nil {
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

// patientWrite resumes where a Write has failed: a disk may fail a few times.
func patientWrite(f *file.File, line string) error {
	for tries := 1; ; tries++ {
		n, err := io.WriteString(f, line)
		if line = line[n:]; line == "" || tries == 10 {
			return err
		}
	}
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
			t.Fatalf("line %.60q in the place of number %d", line, next)
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
	o := crashOptions
	o.OnError = func(err error) { t.Errorf("OnError(%v)", err) }
	f := open(t, path, o)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if got := survivors(t, path, lines); got != lines {
		t.Errorf("%d lines, before the last Open there were %d", got, lines)
	}
	for _, name := range glob(t, path+"-*") {
		if !strings.HasSuffix(name, ".gz") {
			t.Errorf("left: %s", name)
		}
	}
}

func crashCommand(path string, first, n int, tell io.Writer, argv ...string) (*exec.Cmd, *bytes.Buffer) {
	argv = append(argv, os.Args[0])
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%d|%d", crashEnv, path, first, n))
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

func TestKilledAtRandom(t *testing.T) {
	tries, perSeries := 120, 10
	if toldMode() != file.Buffered {
		tries = 30
	}
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("ROLLWAY_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("ROLLWAY_SEED=%d for the same moments", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	var path string
	lines, rotations, leftovers := 0, 0, 0
	for try := range tries {
		if try%perSeries == 0 {
			path, lines = filepath.Join(t.TempDir(), "log"), 0
		}
		tell := &acked{}
		tell.n.Store(-1)
		cmd, stderr := crashCommand(path, lines, 1<<30, tell)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "a first line", func() bool { return tell.n.Load() >= 0 })
		time.Sleep(time.Duration(rng.IntN(20_000)) * time.Microsecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
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
	t.Logf("%d kills, %d rotated files, %d killed while packing", tries, rotations, leftovers)
	if rotations == 0 || toldMode() == file.Buffered && (rotations < tries || leftovers == 0) {
		t.Errorf("%d rotations and %d kills while packing: this tests little", rotations, leftovers)
	}
}

// Two processes that write and rotate one path: each line is there once and
// whole. The second is killed in some rounds.
func TestTwoProcessesOnOnePath(t *testing.T) {
	for round := range 6 {
		path := filepath.Join(t.TempDir(), "log")
		const lines, second = 1500, 1_000_000
		var tell [2]acked
		one, stderr1 := crashCommand(path, 0, lines, &tell[0])
		two, stderr2 := crashCommand(path, second, lines, &tell[1])
		if err := errors.Join(one.Start(), two.Start()); err != nil {
			t.Fatal(err)
		}
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
		f := open(t, path, crashOptions) // cuts and tidies up what the kill has left
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
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

// powerModes are ways to write; each says how many first lines are safe when a
// number was told.
var powerModes = map[string]file.Options{
	"each write":               {MaxSize: 2000, Sync: file.EachWrite, Compress: file.Gzip{Level: 1}, CloseTimeout: time.Minute},
	"each write, without gzip": {MaxSize: 2000, Sync: file.EachWrite, CloseTimeout: time.Minute},
	"by call":                  {MaxSize: 2000, Compress: file.Gzip{Level: 1}, CloseTimeout: time.Minute},
	"by interval":              {MaxSize: 2000, Sync: file.Interval, SyncEvery: 2 * time.Millisecond, Compress: file.Gzip{Level: 1}, KeepPlain: 1, CloseTimeout: time.Minute},
	"pruned":                   {MaxSize: 2000, Sync: file.EachWrite, Compress: file.Gzip{Level: 1}, KeepCount: 2, CloseTimeout: time.Minute},
}

// powerWriter writes lines and tells how many are safe.
func powerWriter(path, mode string, lines int) error {
	o := powerModes[mode]
	f, err := openAsTold(path, o)
	if err != nil {
		return err
	}
	for seq := range lines {
		if _, err := f.Write([]byte(crashLine(seq))); err != nil {
			return err
		}
		if o.Sync != file.EachWrite {
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
