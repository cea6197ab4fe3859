package slabfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A disk without room shows as an error of Open, Rebuild or BeginLine, and not
// as a signal that ends the process at some later store. The test runs itself
// again as a child whose mounts are its own.
func TestFullDisk(t *testing.T) {
	const env = "SLABFILE_TEST_FULL"
	dir := os.Getenv(env)
	if dir == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestFullDisk$", "-test.v")
		cmd.Env = append(os.Environ(), env+"="+t.TempDir())
		attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
		if os.Getuid() != 0 {
			attr.Cloneflags |= syscall.CLONE_NEWUSER
			attr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
			attr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
		}
		cmd.SysProcAttr = attr
		out, err := cmd.CombinedOutput()
		switch {
		case errors.Is(err, syscall.EPERM) || strings.Contains(string(out), "cannot mount"):
			t.Skipf("needs to mount a tmpfs in a namespace of its own, as root or where users may: %v %s", err, out)
		case err != nil || !strings.Contains(string(out), "--- PASS: TestFullDisk"):
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
	path := filepath.Join(dir, "slabs")
	fits := Geometry{SlabSize: 8 << 10, SlabCount: 4, LineLimit: 100 << 10} // 40 KiB
	large := Geometry{SlabSize: 64 << 10, SlabCount: 4}

	_, err = Open(path, Options{Geometry: large, Memory: Mapped})
	wantErr(t, err, syscall.ENOSPC, path, "allocate 270336 bytes")
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("a file that could not be made is left: %v", err)
	}

	f := mustOpen(t, path, Options{Geometry: fits, Memory: Mapped})
	if !f.InMemory() {
		t.Error("a tmpfs is not known as one")
	}
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 72<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	line := append(bytes.Repeat([]byte("x"), 90<<10), '\n')
	err = f.BeginLine(1, 1, line)
	wantErr(t, err, syscall.ENOSPC)
	if got := pendingIn(t, f); len(got) != 0 {
		t.Fatalf("a line without room is pending: %d bytes", len(text(got)))
	}
	// Every byte of every slab can be stored, however full the disk is.
	fill := func() {
		for i := range fits.SlabCount {
			fillSlab(f, i, f.NextSeq(), strings.Repeat(strings.Repeat("y", 1023)+"\n", 8))
		}
	}
	fill()
	f = reopen(t, f, large)
	if got := len(mustRecover(t, f)); got != 32<<10 {
		t.Fatalf("%d bytes recovered", got)
	}
	wantErr(t, f.Rebuild(large), syscall.ENOSPC)
	if err := f.Rebuild(fits); err != nil {
		t.Fatal(err)
	}
	fill()
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	f.Free(2)
	if err := f.BeginLine(2, f.NextSeq(), line[len(line)-(60<<10):]); err != nil {
		t.Fatal(err)
	}
	f = reopen(t, f, fits)
	if got := len(mustRecover(t, f)); got != 24<<10+60<<10 {
		t.Fatalf("%d bytes recovered", got)
	}
}
