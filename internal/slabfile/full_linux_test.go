package slabfile

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rollway/rollway/internal/smalldisk"
	"github.com/rollway/rollway/internal/testkit"
)

// A disk without room shows as an error of Open or BeginLine, and not
// as a signal that ends the process at some later store.
func TestFullDisk(t *testing.T) {
	dir := smalldisk.Mount(t, "size=128k")
	if dir == "" {
		return
	}
	path := filepath.Join(dir, "slabs")
	fits := Geometry{SlabSize: 8 << 10, SlabCount: 4, LineLimit: 100 << 10} // 40 KiB
	large := Geometry{SlabSize: 64 << 10, SlabCount: 4}

	_, err := Open(path, Options{Geometry: large})
	wantErr(t, err, syscall.ENOSPC, path, "allocate 270336 bytes")
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("a file that could not be made is left: %v", err)
	}

	f := mustOpen(t, path, Options{Geometry: fits})
	if !f.InMemory() {
		t.Error("a tmpfs is not known as one")
	}
	ballast := filepath.Join(dir, "ballast")
	testkit.OK(t, os.WriteFile(ballast, make([]byte, 72<<10), 0o600))
	line := append(bytes.Repeat([]byte("x"), 90<<10), '\n')
	err = f.BeginLine(1, 1, line)
	wantErr(t, err, syscall.ENOSPC)
	if got := pendingIn(t, f); len(got) != 0 {
		t.Fatalf("a line without room is pending: %d bytes", len(text(got)))
	}
	if info, err := os.Stat(path); err != nil || info.Size() != fits.mapped() || f.Check() != nil {
		t.Fatalf("a line without room leaves %v (%v), Check = %v", info.Size(), err, f.Check())
	}
	// Every byte of every slab can be stored, however full the disk is.
	fill := func() {
		for i := range fits.SlabCount {
			fillSlab(f, i, f.LastSeq()+1, strings.Repeat(strings.Repeat("y", 1023)+"\n", 8))
		}
	}
	fill()
	f = reopen(t, f, large)
	if got := len(mustRecover(t, f)); got != 32<<10 {
		t.Fatalf("%d bytes recovered", got)
	}
	testkit.OK(t, f.Close())
	_, err = Open(path, Options{Geometry: large})
	wantErr(t, err, syscall.ENOSPC, "make room")
	f = mustOpen(t, path, Options{Geometry: fits})
	fill()
	testkit.OK(t, os.Remove(ballast))
	f.Free(2)
	testkit.OK(t, f.BeginLine(2, f.LastSeq()+1, line[len(line)-(60<<10):]))
	f = reopen(t, f, fits)
	if got := len(mustRecover(t, f)); got != 24<<10+60<<10 {
		t.Fatalf("%d bytes recovered", got)
	}
}
