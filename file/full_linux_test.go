package file_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rollway/rollway/file"
)

// A disk that is full within a line: nothing torn stays, and with room again
// every byte is there once. Each test runs itself again as a child, whose
// limits and mounts are its own.

const childEnv = "ROLLWAY_FILE_TEST_CHILD"

func child(t *testing.T, attr *syscall.SysProcAttr) (string, error) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), childEnv+"="+t.TempDir())
	cmd.SysProcAttr = attr
	out, err := cmd.CombinedOutput()
	if err == nil && !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		err = errors.New("the child did not run the test")
	}
	return string(out), err
}

func TestFileSizeLimit(t *testing.T) {
	dir := os.Getenv(childEnv)
	if dir == "" {
		if out, err := child(t, nil); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	max := limit.Cur
	fillUp(t, dir, syscall.EFBIG, func() {
		limit.Cur = 100_001
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			t.Fatal(err)
		}
	}, func() {
		limit.Cur = max
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			t.Fatal(err)
		}
	})
}

func TestFullDisk(t *testing.T) {
	dir := os.Getenv(childEnv)
	if dir == "" {
		attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
		if os.Getuid() != 0 {
			attr.Cloneflags |= syscall.CLONE_NEWUSER
			attr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
			attr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
		}
		out, err := child(t, attr)
		switch {
		case errors.Is(err, syscall.EPERM) || strings.Contains(out, "cannot mount"):
			t.Skipf("needs to mount a tmpfs in a namespace of its own, as root or where users may: %v %s", err, out)
		case err != nil:
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	// Private, or the mount would be seen outside of the namespace.
	err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "")
	if err == nil {
		err = syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=128k")
	}
	if err != nil {
		fmt.Println("cannot mount:", err)
		os.Exit(1)
	}
	ballast := filepath.Join(dir, "ballast")
	fillUp(t, dir, syscall.ENOSPC, func() {
		if err := os.WriteFile(ballast, make([]byte, 20<<10), 0o600); err != nil {
			t.Fatal(err)
		}
	}, func() {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=8m"); err != nil {
			t.Fatal(err)
		}
	})
}

// fillUp writes more than there is room for, in Writes of some 10 kB, makes
// room, and goes on where Write told.
func fillUp(t *testing.T, dir string, full error, limit, room func()) {
	path := filepath.Join(dir, "log")
	f, err := file.Open(path, file.Options{OnNotice: func(s string) { t.Errorf("notice: %s", s) }})
	if err != nil {
		t.Fatal(err)
	}
	limit()
	var all strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&all, `{"seq":%d,"pad":"%s"}`+"\n", i, strings.Repeat("x", 150+i%37))
	}
	data := all.String()
	lines := uint64(strings.Count(data, "\n"))
	failures := 0
	rest := []byte(data)
	for len(rest) > 0 {
		p := rest[:min(10_007, len(rest))]
		p = p[:strings.LastIndexByte(string(p), '\n')+1]
		n, err := f.Write(p)
		rest = rest[n:]
		s := f.Stats()
		if s.Accepted != s.Written+s.Pending || s.Pending != 0 || s.Written != lines-uint64(strings.Count(string(rest), "\n")) {
			t.Fatalf("after %d bytes: Stats = %+v", len(data)-len(rest), s)
		}
		if err == nil {
			continue
		}
		if !errors.Is(err, full) || n > 0 && p[n-1] != '\n' {
			t.Fatalf("Write = %d, %v, want %v at a line end", n, err, full)
		}
		want(t, path, data[:len(data)-len(rest)])
		switch failures++; {
		case failures == 5:
			if s.TornBytes == 0 {
				t.Error("no line was torn: this tests nothing")
			}
			room()
		case failures > 5:
			t.Fatalf("Write with room again = %v", err)
		}
	}
	if failures != 5 {
		t.Errorf("%d Writes failed, want 5", failures)
	}
	want(t, path, data)
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if s := f.Stats(); s.Written != lines || s.Bytes != uint64(len(data)) || s.Errors != 5 {
		t.Errorf("Stats = %+v", s)
	}
}
