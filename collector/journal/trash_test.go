package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/disktest"
	"github.com/rollway/rollway/internal/testkit"
)

// waitSwept waits until the trash is empty.
func waitSwept(t *testing.T, j *Journal) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		j.trash.mu.Lock()
		n := len(j.trash.files)
		j.trash.mu.Unlock()
		if n == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d files are still there after a minute", n)
		}
	}
}

// TestTrashKeepsReaders: who has a removed segment open reads it to its end, and
// its room is given back afterwards.
func TestTrashKeepsReaders(t *testing.T) {
	dir := t.TempDir()
	j, err := Open(dir, Options{})
	testkit.OK(t, err)
	defer j.Close()
	content := bytes.Repeat([]byte("0123456789abcde\n"), (2*freePiece+1000)/16)
	path := filepath.Join(dir, "removed")
	testkit.OK(t, os.WriteFile(path, content, 0o640))
	reader, err := os.Open(path)
	testkit.OK(t, err)
	testkit.OK(t, j.remove(path, int64(len(content))))
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Fatal("the name is still there: ", err)
	}
	got, err := io.ReadAll(reader)
	if err != nil || !bytes.Equal(got, content) {
		t.Fatalf("%d of %d bytes read, %v", len(got), len(content), err)
	}
	testkit.OK(t, reader.Close())
	waitSwept(t, j)
	testkit.OK(t, j.Stats().LastError)
}

// TestTrashOnFullDisk: an append that finds no room takes that of removed files.
func TestTrashOnFullDisk(t *testing.T) {
	var full atomic.Bool
	full.Store(true)
	mem := disktest.NewMem()
	faulty := &disktest.Faulty{FS: mem}
	faulty.Hook = func(op disktest.Op) disktest.Fault {
		if op.Kind == disktest.Write && full.Load() {
			return disktest.Fault{Err: syscall.ENOSPC}
		}
		return disktest.Fault{}
	}
	j, err := Open("/j", Options{Disk: faulty})
	testkit.OK(t, err)
	defer j.Close()
	f, err := mem.OpenFile("/removed", os.O_RDWR|os.O_CREATE, 0o640)
	testkit.OK(t, err)
	j.trash.mu.Lock()
	j.trash.files = append(j.trash.files, trashed{File: closer{f, func() { full.Store(false) }}})
	j.trash.mu.Unlock()
	if _, err := j.Append(t.Context(), lines(0, 2)); err != nil {
		t.Fatal(err)
	}
	full.Store(true)
	if _, err := j.Append(t.Context(), lines(2, 2)); !errors.Is(err, ErrFull) {
		t.Fatal("with an empty trash: ", err)
	}
	full.Store(false)
	if offsets, gaps := readAll(t, j); fmt.Sprint(offsets) != "[0 1]" || len(gaps) != 0 {
		t.Fatal(offsets, gaps)
	}
}

// closer is a file whose Close calls closed.
type closer struct {
	disk.File
	closed func()
}

func (c closer) Close() error {
	c.closed()
	return c.File.Close()
}
