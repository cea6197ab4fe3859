//go:build linux || darwin

package slabfile

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rollway/rollway/internal/recordlog"
	"github.com/rollway/rollway/internal/testkit"
)

var small = Geometry{SlabSize: 100, SlabCount: 3, LineLimit: 5000}

func mustOpen(t testing.TB, path string, o Options) *File {
	t.Helper()
	f, err := Open(path, o)
	testkit.OK(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

func create(t testing.TB, g Geometry) *File {
	t.Helper()
	return mustOpen(t, filepath.Join(t.TempDir(), "slabs"), Options{Geometry: g})
}

// reopen lets the process that has f die, as far as f can see it, and opens the
// file as the next one does.
func reopen(t testing.TB, f *File, g Geometry) *File {
	t.Helper()
	if err := f.unmap(); err != nil {
		t.Fatal(err)
	}
	f.file.Close() // the lock goes, as when a process ends
	f.file = nil
	return mustOpen(t, f.path, Options{Geometry: g})
}

// fillSlab begins slab i and commits text in it.
func fillSlab(f *File, i int, seq uint64, text string) {
	mem, committed := f.Slab(i)
	f.Begin(i, seq)
	*committed = Committed(copy(mem, text), strings.Count(text, "\n"))
	f.store(i, dCommitted, *committed) // so that Pending finds it without another Open
}

// seal gives slab i, which holds text, its checksum.
func seal(f *File, i int, text string) {
	f.Seal(i, recordlog.Extend(f.SealStart(i, len(text), strings.Count(text, "\n")), []byte(text)))
}

// pendingIn returns what is pending, and fails on an error.
func pendingIn(t testing.TB, f *File) (batches []Batch) {
	t.Helper()
	for b, err := range f.Pending() {
		testkit.OK(t, err)
		batches = append(batches, b)
	}
	return batches
}

// text is all data of batches.
func text(batches []Batch) string {
	var b strings.Builder
	for _, batch := range batches {
		b.Write(batch.Data)
	}
	return b.String()
}

func wantText(t testing.TB, f *File, want string) []Batch {
	t.Helper()
	batches := pendingIn(t, f)
	if got := text(batches); got != want {
		t.Fatalf("pending is %q, want %q", got, want)
	}
	for _, b := range batches {
		if b.Problem != nil || b.Cut != 0 {
			t.Fatalf("slab %d: %v, %d bytes cut", b.Slab, b.Problem, b.Cut)
		}
	}
	return batches
}

// mustRecover recovers to memory and wants everything delivered.
func mustRecover(t testing.TB, f *File) string {
	t.Helper()
	var out bytes.Buffer
	r, err := Recover(f, &out, nil)
	if err != nil || len(r.Problems) > 0 {
		t.Fatalf("Recover: %+v, %v", r, err)
	}
	return out.String()
}

func wantErr(t testing.TB, err, want error, words ...string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Fatalf("error %q lacks %q", err, w)
		}
	}
}

func readAll(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	testkit.OK(t, err)
	return b
}
