//go:build unix

package file

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/internal/testkit"
)

func mustOpen(t *testing.T, path string, o Options) *File {
	t.Helper()
	f, err := Open(path, o)
	testkit.OK(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

func balanced(t *testing.T, f *File, written, returned uint64) {
	t.Helper()
	if s := f.Stats(); s.Accepted != s.Written+s.Pending || s.Pending != 0 || s.Written != written || s.Returned != returned {
		t.Errorf("Stats = %+v, want %d written and %d returned", s, written, returned)
	}
}

func TestDevices(t *testing.T) {
	f := mustOpen(t, "/dev/null", Options{Sync: SyncEachWrite})
	if _, err := f.Write([]byte("line\n")); err != nil {
		t.Errorf("Write = %v", err)
	}
	if err := errors.Join(f.Sync(), f.Reopen(), f.Close()); err != nil {
		t.Error(err)
	}
	balanced(t, f, 1, 0)
}

func TestFullDevice(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("this system has no /dev/full")
	}
	f := mustOpen(t, "/dev/full", Options{})
	n, err := f.Write([]byte("a\nb\n"))
	if n != 0 || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "/dev/full") {
		t.Errorf("Write = %d, %v, want 0 and ENOSPC", n, err)
	}
	balanced(t, f, 0, 2)
}

// fifo returns a File on a named pipe and its reading end.
func fifo(t *testing.T, o Options) (*File, *os.File) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fifo")
	testkit.OK(t, syscall.Mkfifo(path, 0o600))
	r, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	testkit.OK(t, err)
	t.Cleanup(func() { r.Close() })
	return mustOpen(t, path, o), r
}

// Open never waits: neither for the reader of a pipe nor for anybody else.
func TestOpenDoesNotHang(t *testing.T) {
	dir := t.TempDir()
	pipe, socket := filepath.Join(dir, "pipe"), filepath.Join(dir, "socket")
	testkit.OK(t, syscall.Mkfifo(pipe, 0o600))
	l, err := net.Listen("unix", socket)
	testkit.OK(t, err)
	defer l.Close()
	for path, want := range map[string]string{
		pipe:   "named pipe that nobody reads",
		socket: "is a socket",
		dir:    "is a folder",
	} {
		for _, mode := range []Mode{Buffered, Direct, Uncached} {
			f, err := Open(path, Options{Mode: mode})
			if err == nil {
				f.Close()
			}
			if mode == Buffered && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path)) || err == nil {
				t.Errorf("Open(%s) with Mode %v = %v, want %q", path, mode, err, want)
			}
		}
	}
	// Nor does Reopen, where a pipe came in place of the file.
	path := filepath.Join(dir, "log")
	f := mustOpen(t, path, Options{})
	testkit.OK(t, errors.Join(os.Remove(path), os.Rename(pipe, path)))
	if err := f.Reopen(); err == nil || !strings.Contains(err.Error(), "old file stays in use") {
		t.Errorf("Reopen = %v", err)
	}
	// Nor a Write that looks at the path, nor the way to Options.Failover.
	f.io.nextCheck = time.Time{}
	if _, err := f.Write([]byte("line\n")); err != nil {
		t.Error(err)
	}
	balanced(t, f, 1, 0)
	spare := mustOpen(t, filepath.Join(t.TempDir(), "log"), Options{Failover: dir})
	if err := spare.open(1); err == nil || !strings.Contains(err.Error(), "named pipe that nobody reads") {
		t.Errorf("the failover is opened: %v", err)
	}
}

func TestPipe(t *testing.T) {
	f, r := fifo(t, Options{Sync: SyncEachWrite})
	if _, err := f.Write([]byte("a\nb")); err != nil {
		t.Fatal(err)
	}
	if n, err := f.WriteBuffers([][]byte{[]byte("c\n"), nil, []byte("d\ne\n")}, 3); n != 6 || err != nil {
		t.Fatalf("WriteBuffers = %d, %v", n, err)
	}
	testkit.OK(t, errors.Join(f.Sync(), f.Close()))
	if got, err := io.ReadAll(r); string(got) != "a\nb\nc\nd\ne\n" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
	balanced(t, f, 5, 0)
}

func TestPipeWithoutReader(t *testing.T) {
	f, r := fifo(t, Options{})
	r.Close()
	n, err := f.Write([]byte("a\n"))
	if n != 0 || !errors.Is(err, syscall.EPIPE) {
		t.Errorf("Write = %d, %v, want 0 and EPIPE", n, err)
	}
	balanced(t, f, 0, 1)
}

// A line torn in a pipe cannot be taken back: it is ended, and the line sent
// again is whole.
func TestTornLineInPipe(t *testing.T) {
	var notices []string
	f, r := fifo(t, Options{OnError: func(err error) { notices = append(notices, err.Error()) }})
	long := strings.Repeat("x", 1<<20) + "\n" // more than a pipe holds
	type result struct {
		n   int
		err error
	}
	written := make(chan result, 1)
	go func() {
		n, err := f.Write([]byte("a\n" + long))
		written <- result{n, err}
	}()
	// Once something has come the Write is past its beginning, and hangs.
	first := make([]byte, 2)
	if _, err := io.ReadFull(r, first); string(first) != "a\n" || err != nil {
		t.Fatalf("read %q, %v", first, err)
	}
	f.io.f.SetWriteDeadline(time.Unix(1, 0))
	if got := <-written; got.n != 2 || !errors.Is(got.err, os.ErrDeadlineExceeded) {
		t.Fatalf("Write into a full pipe = %d, %v, want 2 and a deadline", got.n, got.err)
	}
	balanced(t, f, 1, 1)
	f.io.f.SetWriteDeadline(time.Time{})
	all := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(r)
		all <- string(b)
	}()
	if _, err := f.Write([]byte(long)); err != nil {
		t.Fatal(err)
	}
	testkit.OK(t, f.Close())
	torn, rest, _ := strings.Cut(<-all, "\n")
	if strings.Trim(torn, "x") != "" || len(torn) >= len(long) || rest != long {
		t.Errorf("read a torn line of %d bytes and then %d bytes, want one whole line", len(torn), len(rest))
	}
	f.Told()
	if len(notices) != 1 || f.Stats().TornBytes != uint64(len(torn)) {
		t.Errorf("notices %q, Stats %+v", notices, f.Stats())
	}
	balanced(t, f, 2, 1)
}

// Shutdown frees a Write that hangs in a pipe and those that wait for it.
func TestShutdownOnStalledPipe(t *testing.T) {
	f, _ := fifo(t, Options{})
	errs := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := f.Write([]byte(strings.Repeat("x", 1<<20) + "\n"))
			errs <- err
		}()
	}
	for f.Stats().Pending < 2 || len(f.turn) == 0 {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	if err := f.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Flush = %v, want deadline exceeded", err)
	}
	if err := f.SyncContext(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("SyncContext = %v, want deadline exceeded", err)
	}
	err := f.Shutdown(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "2 lines") {
		t.Errorf("Shutdown = %v, want deadline exceeded and 2 lines", err)
	}
	for range 2 {
		if err := <-errs; err == nil {
			t.Error("Write into a stalled pipe = nil")
		}
	}
	<-f.shut
	if err := f.io.f.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the last call did not close the file: %v", err)
	}
	if again := f.Close(); again != err {
		t.Errorf("Close = %v, want what Shutdown returned", again)
	}
	balanced(t, f, 0, 2)
}

// A write that cannot be ended stays pending until it comes back, and then
// closes the file.
func TestShutdownLeavesBehindWhatHangs(t *testing.T) {
	f := mustOpen(t, filepath.Join(t.TempDir(), "log"), Options{})
	release := make(chan struct{})
	go f.barrier(context.Background(), "test", func() error { <-release; return nil })
	for len(f.turn) == 0 {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if err := f.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown = %v", err)
	}
	if _, err := f.io.f.Stat(); err != nil {
		t.Errorf("the file was closed under a call: %v", err)
	}
	close(release)
	<-f.shut
	if _, err := f.io.f.Stat(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the last call did not close the file: %v", err)
	}
}

// Standard output is used as it is, and not closed.
func TestStdout(t *testing.T) {
	r, w, err := os.Pipe()
	testkit.OK(t, err)
	defer r.Close()
	real := os.Stdout
	os.Stdout = w
	f, err := Open("/dev/stdout", Options{})
	os.Stdout = real
	testkit.OK(t, err)
	_, err = f.Write([]byte("a\n"))
	if err := errors.Join(err, f.Sync(), f.Reopen(), f.Close()); err != nil {
		t.Error(err)
	}
	if _, err := w.WriteString("b\n"); err != nil {
		t.Errorf("Close has closed standard output: %v", err)
	}
	w.Close()
	if got, _ := io.ReadAll(r); string(got) != "a\nb\n" {
		t.Errorf("read %q", got)
	}
}

// Where something else follows a torn line, nothing is cut.
func TestForeignBytesAreNotCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f := mustOpen(t, path, Options{})
	if _, err := f.io.f.WriteString("torn"); err != nil {
		t.Fatal(err)
	}
	other, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	testkit.OK(t, err)
	defer other.Close()
	if _, err := other.WriteString("foreign"); err != nil {
		t.Fatal(err)
	}
	f.io.torn = 4
	if _, err := f.Write([]byte("mine\n")); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(path); string(b) != "tornforeign\nmine\n" {
		t.Errorf("the file holds %q", b)
	}
	balanced(t, f, 1, 0)
}

// A pipe has no fsync, also in the background.
func TestPipeSyncInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []error
		f, _ := fifo(t, Options{Sync: SyncInterval, OnError: func(err error) { told = append(told, err) }})
		if _, err := f.Write([]byte("a\n")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		err := errors.Join(f.Sync(), f.Close())
		f.Told()
		if err != nil || len(told) > 0 {
			t.Errorf("Sync and Close = %v, told %v", err, told)
		}
	})
}
