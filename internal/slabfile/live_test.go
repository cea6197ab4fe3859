//go:build linux || darwin

package slabfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/testkit"
)

const childEnv = "SLABFILE_TEST_CHILD"

// TestMain lets the test binary be the owner of a file until it is killed.
func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		_, err := Open(path, Options{Geometry: small})
		fmt.Println(cmp.Or(err, errors.New("open")))
		time.Sleep(time.Hour)
	}
	os.Exit(m.Run())
}

// A live owner in another process is named; a dead one is not in the way.
func TestOwnerInAnotherProcess(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "slabs")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+path)
	out, err := cmd.StdoutPipe()
	testkit.OK(t, err)
	testkit.OK(t, cmd.Start())
	defer cmd.Wait()
	defer cmd.Process.Kill()
	if _, err := io.ReadFull(out, make([]byte, len("open\n"))); err != nil {
		t.Fatal(err)
	}
	for _, o := range []Options{{}, {ReadOnly: true}, {Geometry: small}} {
		_, err := Open(path, o)
		wantErr(t, err, ErrLocked, path, fmt.Sprintf("in use by process %d", cmd.Process.Pid))
	}
	testkit.OK(t, cmd.Process.Kill())
	cmd.Wait()
	f := mustOpen(t, path, Options{})
	if o := f.Owner(); o.PID != cmd.Process.Pid || o.Name != filepath.Base(os.Args[0]) {
		t.Errorf("owner %v, want process %d", o, cmd.Process.Pid)
	}
}

func TestInMemory(t *testing.T) {
	mounts, err := os.ReadFile("/proc/mounts")
	if err != nil {
		t.Skip("no /proc/mounts to compare with: ", err)
	}
	for _, dir := range []string{t.TempDir(), tmpfs(t)} {
		if dir == "" {
			continue
		}
		f := mustOpen(t, filepath.Join(dir, "slabs"), Options{Geometry: small})
		longest, kind := "", ""
		for line := range strings.Lines(string(mounts)) {
			fields := strings.Fields(line)
			if rel, err := filepath.Rel(fields[1], dir); err == nil && filepath.IsLocal(rel) && len(fields[1]) >= len(longest) {
				longest, kind = fields[1], fields[2]
			}
		}
		if want := kind == "tmpfs" || kind == "ramfs"; f.InMemory() != want {
			t.Errorf("InMemory is %t on %s at %s", f.InMemory(), kind, longest)
		}
	}
}

// tmpfs returns a folder of the test's own on the usual tmpfs, or nothing.
func tmpfs(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "slabfile")
	if err != nil {
		return ""
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// TestMatches: what something else has written to a slab or to its descriptor is
// noticed, and nothing else is.
func TestMatches(t *testing.T) {
	f := create(t, Geometry{SlabSize: 4096, SlabCount: 2})
	const lines = "one\ntwo\n"
	fillSlab(f, 1, 7, lines)
	f.Mark(1, 4, 1, 2, 3)
	f.Delivered(1, 4)
	for _, at := range []int64{-1, f.geometry.slabAt(0), f.geometry.slabAt(1) + 8, headerSize + descriptorSize - 1} {
		if at >= 0 {
			alterByte(t, f.path, at)
		}
		if !f.Matches(1, 0, []byte(lines)) || !f.Matches(1, 4, []byte("two\n")) {
			t.Errorf("after a change of byte %d, which is not of the slab, it does not match", at)
		}
	}
	for _, at := range []int64{
		f.geometry.slabAt(1), f.geometry.slabAt(1) + 7, headerSize + descriptorSize, headerSize + descriptorSize + dDelivered,
		headerSize + 2*descriptorSize - 1,
	} {
		alterByte(t, f.path, at)
		if f.Matches(1, 0, []byte(lines)) {
			t.Errorf("a change of byte %d goes unnoticed", at)
		}
		alterByte(t, f.path, at) // back
	}
	testkit.OK(t, os.Truncate(f.path, headerSize))
	if f.Matches(1, 0, nil) {
		t.Error("a file that was cut matches")
	}
}

// TestTouch: a file whose pages were never stored into has no hole once each
// was touched, and is not changed by it.
func TestTouch(t *testing.T) {
	f := mustOpen(t, filepath.Join(tmpfs(t), "slabs"), Options{Geometry: Geometry{SlabSize: 4096, SlabCount: 3}})
	before := readAll(t, f.path)
	size := f.geometry.mapped()
	testkit.OK(t, f.unmap())
	testkit.OK(t, os.Truncate(f.path, headerSize))
	testkit.OK(t, allocate(f.file, size))
	var err error
	if f.mem, err = mapShared(f.file, int(size)); err != nil {
		t.Fatal(err)
	}
	f.touch()
	if at := firstHole(f.file); at >= 0 && at < size {
		t.Errorf("there is a hole at byte %d of %d", at, size)
	}
	clear(before[headerSize:])
	if got := readAll(t, f.path); !bytes.Equal(got, before) {
		t.Error("the file is another one")
	}
}

// alterByte turns the bits of a byte of the file.
func alterByte(t *testing.T, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	testkit.OK(t, err)
	defer f.Close()
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, at); err != nil {
		t.Fatal(err)
	}
	b[0] = ^b[0]
	if _, err := f.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
}
