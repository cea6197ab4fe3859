package file_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/testkit"
)

// Killed by strace on entering each of the system calls that a rotation and the
// packing make, the first time a thread makes it, the second, and so on.
func TestKilledInEachSystemCall(t *testing.T) {
	t.Parallel()
	testkit.NoRace(t, "the process under strace tells the detector nothing")
	killedInEachSystemCall(t, 4)
}

func TestKilledInEachSystemCallLong(t *testing.T) {
	testkit.Nightly(t, testkit.Kills, "more calls to be killed in")
	killedInEachSystemCall(t, 40)
}

func killedInEachSystemCall(t *testing.T, most int) {
	strace := testkit.Strace(t)
	for mode, calls := range map[file.Mode][]string{
		file.Buffered: {"renameat2", "fsync", "unlinkat", "openat", "close", "write", "writev", "fchmod", "utimensat", "flock"},
		file.Direct:   {"renameat2", "openat", "close", "pwritev2", "fcntl", "flock", "fallocate", "ftruncate"},
	} {
		for _, call := range calls {
			t.Run(fmt.Sprint(mode, " ", call), func(t *testing.T) {
				t.Parallel()
				killedInCall(t, strace, mode, call, most)
			})
		}
	}
}

func killedInCall(t *testing.T, strace string, mode file.Mode, call string, most int) {
	kills := 0
	kill := func(n int) {
		path, failed := filepath.Join(fastDir(t, mode), "log"), t.Failed()
		lines := 700 // some 10 files: more calls than threads, or none makes a second one
		if most > 10 {
			lines = 1600
		}
		tell := &acked{}
		cmd, stderr := crashCommand(path, mode, 0, lines, tell, strace, "-f", "-qq", "-o", os.DevNull,
			"-e", "trace="+call, "-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", call, n))
		begin := time.Now()
		err := cmd.Run()
		took := time.Since(begin)
		found := contentsOf(t, path)
		defer func() {
			if t.Failed() && !failed { // in one line, with the word that people look for
				t.Logf("FAIL at number %d, after %d kills: in %v the process told of %d lines and ended with %v, saying %q; it left [%s]; now there is [%s]",
					n, kills, took, tell.n.Load(), err, stderr, inventory(found), inventory(contentsOf(t, path)))
			}
		}()
		switch {
		case killed(err):
			kills++
		case err != nil:
			t.Fatalf("number %d: %v: %s", n, err, stderr)
		}
		if _, there := found["log"]; !there && tell.n.Load() == 0 {
			return // killed before it began
		}
		left := survivors(t, path, int(tell.n.Load()))
		atRest(t, path, left)
		if err == nil && left != lines {
			t.Errorf("number %d: %d lines of a process that ended well", n, left)
		}
		if strings.Contains(stderr.String(), "panic") {
			t.Errorf("number %d: %s", n, stderr)
		}
	}
	for n := 1; n <= most; n = n + 1 + n/4 {
		kill(n)
	}
	t.Logf("%d kills", kills)
	if kills < 2 {
		t.Errorf("%d kills: this tests little", kills)
	}
}

// contentsOf returns the bytes of each file of the series at path, by name.
func contentsOf(t *testing.T, path string) map[string][]byte {
	t.Helper()
	contents := map[string][]byte{}
	for _, name := range glob(t, path+"*") {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Error(err)
		}
		contents[filepath.Base(name)] = b
	}
	return contents
}

// inventory says which lines the files hold: a failure that comes once in some
// hundred runs has to tell by itself what there was.
func inventory(contents map[string][]byte) string {
	var s []string
	for _, name := range slices.Sorted(maps.Keys(contents)) {
		b := contents[name]
		what := fmt.Sprintf("%s: %d bytes", name, len(b))
		var err error
		if strings.Contains(name, ".gz") {
			var r io.ReadCloser
			if r, err = (file.Gzip{}).NewReader(bytes.NewReader(b)); err == nil {
				b, err = io.ReadAll(r)
			}
		}
		if len(b) > 0 && err == nil {
			whole := b[:bytes.LastIndexByte(b, '\n')+1]
			first, _, _ := bytes.Cut(b, []byte(" "))
			last, _, _ := bytes.Cut(whole[bytes.LastIndexByte(bytes.TrimSuffix(whole, []byte("\n")), '\n')+1:], []byte(" "))
			what += fmt.Sprintf(", lines %.10s to %.10s, torn %d", first, last, len(b)-len(whole))
		}
		if err != nil {
			what += fmt.Sprintf(", %v", err)
		}
		s = append(s, what)
	}
	return strings.Join(s, "; ")
}

// The disk refuses a rename, an fsync or the removal of a file, once or for
// ever: no line is lost, and what was refused is done later or stays whole.
func TestFailingSystemCalls(t *testing.T) {
	t.Parallel()
	testkit.NoRace(t, "the process under strace tells the detector nothing")
	strace := testkit.Strace(t)
	injections := map[file.Mode][]string{file.Buffered: {
		"renameat2:error=ENOSPC", "renameat2:error=EIO:when=2", "renameat2:error=EIO:when=1+2", "renameat2:error=EINVAL",
		"fsync:error=EIO", "fsync:error=EIO:when=1", "unlinkat:error=EIO:when=1", "unlinkat:error=EPERM",
		"flock:error=ENOLCK", "fchmod:error=EPERM", "fchown:error=EPERM", "utimensat:error=EPERM",
		"renameat2:error=EINTR:when=1", "fsync:error=ENOSPC:when=1+3",
		"writev:error=EIO:when=3+7", "writev:error=ENOSPC:when=3+7", "writev:error=EROFS:when=1+9",
	}, file.Direct: {
		"renameat2:error=EIO:when=1+2", "flock:error=ENOLCK",
		"pwritev2:error=EIO:when=3+7", "pwritev2:error=ENOSPC:when=2+5", "pwritev2:error=EINTR:when=1+2",
		"pwritev2:error=EINVAL:when=5", "pwritev2:error=EIO:when=100+9", "pwritev2:retval=0:when=4+9",
		"ftruncate:error=EIO:when=2+3", "fcntl:error=EIO:when=60+19", "fallocate:error=ENOSPC",
	}}
	for mode, list := range injections {
		for _, inject := range list {
			t.Run(fmt.Sprint(mode, " ", inject), func(t *testing.T) {
				t.Parallel()
				path := filepath.Join(fastDir(t, mode), "log")
				const lines = 280
				tell := &acked{}
				call, _, _ := strings.Cut(inject, ":")
				cmd, stderr := crashCommand(path, mode, 0, lines, tell, strace, "-f", "-qq", "-o", os.DevNull,
					"-e", "trace="+call, "-e", "inject="+inject)
				err := cmd.Run()
				if err != nil && call != "fsync" { // with it Close may say what it cannot promise
					t.Errorf("%v: %s", err, stderr)
				}
				if left := survivors(t, path, int(tell.n.Load())); left != lines {
					t.Errorf("%d of %d lines", left, lines)
				}
				atRest(t, path, lines)
			})
		}
	}
}
