package shard_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/needs"
	"github.com/rollway/rollway/shard"
)

// Faults of the system: each test runs itself again as a child, whose limits,
// mounts and tracer are its own.

const childEnv = "ROLLWAY_SHARD_TEST_CHILD"

func child(t *testing.T, attr *syscall.SysProcAttr, wrap ...string) (string, error) {
	t.Helper()
	top, _, _ := strings.Cut(t.Name(), "/")
	args := append(wrap, os.Args[0], "-test.run=^"+top+"$", "-test.v", "-stress="+(*stressFor/5).String(), fmt.Sprintf("-seed=%d", *stressSeed))
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), childEnv+"="+t.TempDir())
	cmd.SysProcAttr = attr
	out, err := cmd.CombinedOutput()
	if err == nil && !strings.Contains(string(out), "--- PASS: "+top) {
		err = errors.New("the child did not run the test")
	}
	return string(out), err
}

// atLeastOnce wants records 0 to n-1 of each goroutine in the files, in any order
// of files: once, or some of them twice where that is said.
func atLeastOnce(t *testing.T, goroutines, n int, twice bool, paths ...string) {
	t.Helper()
	seen := map[[2]int]bool{}
	for _, path := range paths {
		last := map[int]int{}
		readTorn(t, path, true, func(g, seq int) {
			if seen[[2]int{g, seq}] && !twice {
				t.Errorf("%s: record %d of goroutine %d is there twice", path, seq, g)
			}
			if l, ok := last[g]; ok && l >= seq {
				t.Errorf("%s: record %d of goroutine %d comes after %d", path, seq, g, l)
			}
			seen[[2]int{g, seq}], last[g] = true, seq
		})
	}
	if len(seen) != goroutines*n {
		t.Errorf("%d records in %d files, want %d", len(seen), len(paths), goroutines*n)
	}
}

// faulty are the ways of writing that the faults are tried on.
func faulty(dir string, kind shard.FileOptions) shard.Options {
	kind.MaxSize, kind.Sync, kind.Failover = 500<<10, shard.SyncEach, filepath.Join(dir, "second")
	return shard.Options{
		BufferSize:    256 << 10,
		Shards:        4,
		Full:          shard.Block,
		FlushInterval: time.Millisecond,
		StallAfter:    time.Minute,
		CloseTimeout:  time.Minute,
		Retry:         shard.Retry{Min: time.Millisecond, Max: 10 * time.Millisecond},
		File:          kind,
	}
}

// tracer returns the path of strace, which may trace here.
func tracer(t *testing.T) string {
	t.Helper()
	strace := needs.Strace(t)
	return strace
}

// Calls of the system that fail, once or again and again: no record is lost or
// torn or there twice.
func TestInjected(t *testing.T) {
	const goroutines, rounds, each = 4, 6, 25
	if dir := os.Getenv(childEnv); dir != "" {
		for _, kind := range []shard.FileOptions{kinds[0], kinds[2], kinds[3]} {
			dir := filepath.Join(dir, nameOf(kind))
			if err := os.MkdirAll(filepath.Join(dir, "second"), 0o700); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "log")
			var heard told
			o := faulty(dir, kind)
			o.OnError = heard.add
			w, err := shard.Open(path, o)
			if err != nil {
				t.Logf("%s: Open = %v", nameOf(kind), err)
				continue
			}
			for round := range rounds {
				write(t, w, goroutines, round*each, each, 5000)
				if err := w.Flush(t.Context()); err != nil {
					t.Error(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Logf("Close = %v", err)
			}
			ledger(w).CheckSettled(t, goroutines*rounds*each, goroutines*rounds*each)
			// Where an fsync fails and then what says that, OnError tells of it.
			twice := strings.Contains(heard.String(), "are written again elsewhere")
			atLeastOnce(t, goroutines, rounds*each, twice, append(seriesOf(t, path), seriesOf(t, filepath.Join(dir, "second", "log"))...)...)
			t.Logf("%s: %d errors, %+v", nameOf(kind), w.Stats().Errors, w.Stats().File)
		}
		return
	}
	strace := tracer(t)
	for inject, want := range map[string]string{ // what must have happened at least once, or never ("-")
		"pwritev2:error=EINTR:when=2+3":         "-Sealed",
		"pwritev2:error=EIO:when=3+4":           "Sealed",
		"pwritev2:error=EIO:when=2+3":           "Sealed",
		"pwritev2:error=EIO:when=5..30":         "Failovers",
		"pwritev2:error=EUCLEAN:when=3+4":       "Sealed",
		"pwritev2:error=ENOTCONN:when=5..30":    "Failovers",
		"pwritev2:error=ENOSPC:when=2+3":        "-Sealed",
		"pwritev2:error=EINVAL:when=4+5":        "errors",
		"pwritev2:retval=0:when=2+3":            "-Sealed",
		"fdatasync:error=EIO:when=2+3":          "Sealed",
		"fdatasync:error=EIO:when=5..30":        "Failovers",
		"fsync:error=EIO:when=2+3":              "Sealed",
		"ftruncate:error=EIO:when=2+3":          "-Sealed",
		"fcntl:error=EIO:when=9+4":              "errors",
		"fallocate:error=ENOSPC":                "-Sealed",
		"renameat2:error=EIO":                   "-Rotations",
		"renameat2:error=EIO:when=1+2":          "-Sealed",
		"flock:error=ENOLCK":                    "-Sealed",
		"pwritev2,fdatasync:error=EIO:when=5+3": "Sealed",
	} {
		t.Run(inject, func(t *testing.T) {
			calls, _, _ := strings.Cut(inject, ":")
			name, never := strings.CutPrefix(want, "-")
			happened := regexp.MustCompile(`\b(` + name + `:[1-9]|[1-9]\d* ` + name + `,)`)
			// strace counts the calls of each thread, and on which ones a goroutine
			// makes its calls is up to the scheduler: a fault may meet none.
			for tries := 1; ; tries++ {
				out, err := child(t, nil, strace, "-f", "-qq", "-o", os.DevNull, "-e", "trace="+calls, "-e", "inject="+inject)
				if err != nil || strings.Contains(out, "--- SKIP") {
					t.Fatalf("%v\n%s", err, out)
				}
				t.Log(out)
				some := happened.MatchString(out)
				if some == never && (never || tries == 10) {
					t.Fatalf("%s, in try %d:\n%s", want, tries, out)
				}
				if some != never {
					return
				}
			}
		})
	}
}

// TestStressFaults is TestStressFiles with a failover, while calls of the system
// fail: for a fifth of -stress in each of some ways.
func TestStressFaults(t *testing.T) {
	if os.Getenv(childEnv) != "" {
		seeds(t, func(t *testing.T, seed uint64) { stressFiles(t, seed, true) })
		return
	}
	strace := tracer(t)
	for _, inject := range []string{
		"pwritev2:error=EIO:when=20+37",
		"pwritev2:error=EIO:when=20..21+37", // and what would say that the rest of a batch is not to be read
		"pwritev2:error=ENOSPC:when=20+41",  // a record of a mebibyte is 17 calls, and begins anew when one fails
		"pwritev2:retval=0:when=20+43",
		"fdatasync:error=EIO:when=9+13",
		"pwritev2,fdatasync,renameat2:error=EIO:when=31+53",
	} {
		t.Run(inject, func(t *testing.T) {
			calls, _, _ := strings.Cut(inject, ":")
			out, err := child(t, nil, strace, "-f", "-qq", "-o", os.DevNull, "-e", "trace="+calls, "-e", "inject="+inject)
			if err != nil || strings.Contains(out, "--- SKIP") {
				t.Fatalf("%v\n%s", err, out)
			}
			t.Log(out)
		})
	}
}
