package slab_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/smalldisk"
	"github.com/rollway/rollway/internal/testkit"
	"github.com/rollway/rollway/slab"
)

// A slab file on a disk is used, and OnError says what it may cost; on a tmpfs
// there is nothing to say.
func TestPersistAdvisesTmpfs(t *testing.T) {
	memory, disk := folderOn(t, true, "/dev/shm", os.TempDir()), folderOn(t, false, os.TempDir(), ".", "/var/tmp")
	for dir, want := range map[string]int{memory: 0, disk: 1} {
		var told reports
		w, dst := open(t, slab.Options{Persist: filepath.Join(dir, "slabs"), OnError: told.add})
		put(t, w, "one")
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		settled(t, w, dst, 1)
		if want > 0 {
			told.await(t, "put it on a tmpfs, as /dev/shm is")
		}
		if text := told.String(); len(told.times()) != want || want > 0 && !strings.Contains(text, dir) {
			t.Errorf("%s: OnError was told %q, want %d pieces of advice", dir, text, want)
		}
	}
}

// folderOn returns a new folder in the first of parents that is on a tmpfs, or
// that is not.
func folderOn(t *testing.T, tmpfs bool, parents ...string) string {
	t.Helper()
	const magic = 0x01021994
	for _, parent := range parents {
		var st syscall.Statfs_t
		if err := syscall.Statfs(parent, &st); err != nil || (st.Type == magic) != tmpfs {
			continue
		}
		dir, err := os.MkdirTemp(parent, "slab-test-")
		if err != nil {
			continue
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		return dir
	}
	testkit.Missing(t, "a folder that can be written to on a tmpfs, and one that is on none")
	return ""
}

// A long line that the slab file has no room for is delivered all the same, and
// counted; what has room is not.
func TestPersistUnkept(t *testing.T) {
	dir := smalldisk.Mount(t, "size=256k")
	if dir == "" {
		return
	}
	ballast := filepath.Join(dir, "ballast")
	w, dst := open(t, slab.Options{SlabSize: 4 << 10, SlabCount: 4, MaxLine: 128 << 10, Persist: filepath.Join(dir, "slabs")})
	long := strings.Repeat("x", 100<<10)
	put(t, w, long)
	testkit.OK(t, w.Flush(t.Context()))
	if n := w.Stats().Unkept; n != 0 {
		t.Errorf("Unkept = %d while there is room", n)
	}
	testkit.OK(t, os.WriteFile(ballast, bytes.Repeat([]byte("b"), 180<<10), 0o600))
	put(t, w, "one", long, "two", long)
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if n := w.Stats().Unkept; n != 2 {
		t.Errorf("Unkept = %d, want the 2 that had no room", n)
	}
	want(t, "lines", dst.Lines(), []string{long, "one", long, "two", long})
	settled(t, w, dst, 5)
}

// A file.File on what has no positions, such as a named pipe, gets its lines, and
// counts no failure.
func TestPersistBeforeAPipe(t *testing.T) {
	path := inMemory(t)
	pipe := path + ".pipe"
	testkit.OK(t, syscall.Mkfifo(pipe, 0o600))
	end, err := os.OpenFile(pipe, os.O_RDWR, 0)
	testkit.OK(t, err)
	defer end.Close()
	f, err := file.Open(pipe, file.Options{})
	testkit.OK(t, err)
	w, err := slab.New(f, slab.Options{Persist: path, CloseTimeout: 2 * time.Second, OnError: func(error) {}})
	testkit.OK(t, err)
	put(t, w, "one", "two")
	testkit.OK(t, w.Close())
	got := make([]byte, 100)
	if n, err := end.Read(got); err != nil || string(got[:n]) != "one\ntwo\n" {
		t.Errorf("the pipe has %q, %v", got[:n], err)
	}
	if s := f.Stats(); s.Errors != 0 || s.LastError != nil {
		t.Errorf("the file's Stats %+v", s)
	}
}
