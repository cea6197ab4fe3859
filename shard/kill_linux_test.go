package shard_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// Killed by strace on entering a call of the system, the first time a thread makes
// it, the second, and so on: amid writes, rotations, the end of a file, an old one
// that is removed or used again. What a Flush had written is there, unless in a file that Keep does not cover.
func TestKilledInEachSystemCall(t *testing.T) {
	const goroutines = 6
	strace := tracer(t)
	for call, most := range map[string]int{
		"renameat2": 4, "openat": 12, "pwritev2": 30, "ftruncate": 12, "fdatasync": 30, "fsync": 12, "fcntl": 30, "close": 12, "unlinkat": 2, "flock": 4,
	} {
		t.Run(call, func(t *testing.T) {
			kills := 0
			for n := 1; n <= most; n += 1 + n/3 {
				kind := smallFiles + n%4
				path := filepath.Join(t.TempDir(), "log")
				tell := &rounds{}
				cmd := exec.Command(strace, "-f", "-qq", "-o", os.DevNull, "-e", "trace="+call,
					"-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", call, n), os.Args[0])
				cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%d|%d|%d|%d", crashEnv, path, kind, 0, goroutines, 25))
				var stderr bytes.Buffer
				cmd.Stdout, cmd.Stderr = tell, &stderr
				err := cmd.Run()
				var exit *exec.ExitError
				if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signaled() {
					kills++
				} else if err != nil && exit.ExitCode() != 1 || stderr.Len() > 0 {
					t.Fatalf("%d: %v: %s", n, err, &stderr)
				}
				o := crashOptions(kind)
				w := openFile(t, path, o)
				log(t, w, string(record(0, 1<<30, 10)))
				closeFile(t, w)
				acked := int(tell.n.Load()) * perRound
				if o.File.Keep > 0 { // any of it may be in files that were removed
					acked = 0
				}
				survived(t, goroutines, acked, 0, seriesOf(t, path))
			}
			if kills == 0 && call != "unlinkat" {
				t.Error("no kill: this tests nothing")
			}
			t.Logf("%d kills", kills)
		})
	}
}
