//go:build unix

package file_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/testkit"
)

// An OnError that never returns holds up no call, Close neither.
func TestNothingWaitsForOnError(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, mode file.Mode, dir string) {
		path, hang, calls := filepath.Join(dir, "log"), make(chan struct{}), 0
		testkit.OK(t, os.WriteFile(path, []byte("torn"), 0o600))
		began := time.Now()
		f := open(t, path, file.Options{Mode: mode, MaxSize: 10, Folder: dir, OnError: func(error) {
			calls++
			<-hang
		}})
		const lines = 100 // more than the errors that are kept
		for i := range lines {
			f.Tell(fmt.Errorf("error %d", i))
			synctest.Wait() // the first is with OnError
			write(t, f, "line\n")
		}
		if err := errors.Join(f.Flush(t.Context()), f.Sync(), f.Close()); err != nil {
			t.Error(err)
		}
		if d := time.Since(began); d > time.Second {
			t.Errorf("OnError held up the calls for %v", d)
		}
		ledger(f).CheckSettled(t, lines, lines)
		synctest.Wait()
		if calls != 1 {
			t.Errorf("%d calls of OnError, want 1", calls)
		}
		f.Tell(errors.New("after Close"))
		close(hang)
		f.Told()
		if calls != 1+64 {
			t.Errorf("%d calls of OnError, want those that were kept", calls)
		}
	})
}

// What goes on failing is told at once and then once a minute.
func TestErrorsAreToldOnceAMinute(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, mode file.Mode, dir string) {
		folder := filepath.Join(dir, "old")
		testkit.OK(t, os.Mkdir(folder, 0o700))
		began := time.Now()
		var at []time.Duration
		f := open(t, filepath.Join(dir, "log"), file.Options{Mode: mode, MaxSize: 5, Folder: folder, OnError: func(err error) {
			if strings.Contains(err.Error(), "file in use is written on") {
				at = append(at, time.Since(began))
			}
		}})
		testkit.OK(t, os.Remove(folder))
		for range 200 {
			write(t, f, "line\n")
			time.Sleep(time.Second)
		}
		f.Told()
		if len(at) != 4 || at[0] > 2*time.Second || at[1]-at[0] < time.Minute || f.Stats().Errors < 8 {
			t.Errorf("OnError was called after %v, Stats %+v", at, f.Stats())
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Without OnError a line is written to standard error, unless that is the file.
func TestWithoutOnErrorStandardErrorIsTold(t *testing.T) {
	t.Parallel()
	if os.Getenv("FILE_TEST_STDERR") != "" {
		for _, path := range []string{os.DevNull, "/dev/stderr"} {
			f := open(t, path, file.Options{})
			f.Tell(errors.New("failed by " + path))
			f.Told()
			write(t, f, "a line\n")
		}
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "FILE_TEST_STDERR=1")
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		t.Error(err)
	}
	first, rest, _ := strings.Cut(said.String(), "\n")
	if !strings.HasPrefix(first, `{"time":"`) || !strings.HasSuffix(first, `"level":"ERROR","msg":"failed by `+os.DevNull+`"}`) || rest != "a line\n" {
		t.Errorf("standard error got %q", said.String())
	}
}
