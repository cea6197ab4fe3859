package journal

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/disktest"
	"github.com/rollway/rollway/internal/testkit"
)

// filesOf returns the files of the journal in mem.
func filesOf(t testing.TB, mem *disktest.Mem) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := mem.List("/j")
	testkit.OK(t, err)
	for _, e := range entries {
		if !e.Dir {
			text, err := mem.ReadFile("/j/" + e.Name)
			testkit.OK(t, err)
			files[e.Name] = string(text)
		}
	}
	return files
}

// readOnlyAs checks that a journal opened for readers alone has the records at these offsets,
// and that its folder stays as it is.
func readOnlyAs(t testing.TB, mem *disktest.Mem, want []uint64) {
	t.Helper()
	before := filesOf(t, mem)
	j, err := openReadOnly(mem, "/j")
	testkit.OK(t, err)
	if got, _ := readAll(t, j); !slices.Equal(got, want) {
		t.Errorf("read only: read %d, want %d, findings %v", got, want, j.Recovery().Findings)
	}
	if _, err := j.Append(context.Background(), lines(0, 1)); err == nil {
		t.Error("a journal for readers alone takes records")
	}
	testkit.OK(t, j.Close())
	if after := filesOf(t, mem); !maps.Equal(before, after) {
		t.Errorf("the folder had %d files, has %d, or one has changed", len(before), len(after))
	}
}

// A real folder: refused while it is open, and read after; not even a lock file is made.
func TestOpenReadOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	if _, err := OpenReadOnly(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	j := mustOpen(t, dir, Options{SegmentBytes: 2000})
	for i := range 50 {
		mustAppend(t, j, lines(i*3, 3))
	}
	if _, err := OpenReadOnly(dir); !errors.Is(err, disk.ErrLocked) {
		t.Errorf("while it is open: %v", err)
	}
	testkit.OK(t, j.Close())
	testkit.OK(t, os.Remove(filepath.Join(dir, "LOCK")))
	names := func() (list []string) {
		entries, err := os.ReadDir(dir)
		testkit.OK(t, err)
		for _, e := range entries {
			info, err := e.Info()
			testkit.OK(t, err)
			list = append(list, e.Name()+info.ModTime().String())
		}
		return list
	}
	before := names()
	r, err := OpenReadOnly(dir)
	testkit.OK(t, err)
	offsets, gaps := readAll(t, r)
	if len(offsets) != 150 || len(gaps) > 0 || r.ID() != j.ID() || r.Next() != 150 || len(r.Recovery().Findings) > 0 {
		t.Errorf("%d records, %v, id %s, next %d, %v", len(offsets), gaps, r.ID(), r.Next(), r.Recovery().Findings)
	}
	if after := names(); !slices.Equal(before, after) {
		t.Errorf("the folder had %q, has %q", before, after)
	}
	mustOpen(t, dir, Options{}).Close() // r holds no lock
	testkit.OK(t, r.Close())
}
