//go:build linux || darwin

package slabfile

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var small = Geometry{SlabSize: 100, SlabCount: 3, LineLimit: 5000}

// memories runs a test with slabs in both kinds of memory.
func memories(t *testing.T, test func(t *testing.T, m Memory)) {
	t.Run("mapped", func(t *testing.T) { test(t, Mapped) })
	t.Run("heap", func(t *testing.T) { test(t, Heap) })
}

func mustOpen(t testing.TB, path string, o Options) *File {
	t.Helper()
	f, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func create(t testing.TB, g Geometry, m Memory) *File {
	t.Helper()
	return mustOpen(t, filepath.Join(t.TempDir(), "slabs"), Options{Geometry: g, Memory: m})
}

// reopen lets the process that has f die, as far as f can see it, and opens the
// file as the next one does. A heap reaches the file only when it is closed.
func reopen(t testing.TB, f *File, g Geometry) *File {
	t.Helper()
	memory := Mapped
	if f.heap {
		memory = Heap
		if err := f.flush(0, f.geometry.mapped()); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.unload(); err != nil {
		t.Fatal(err)
	}
	f.file.Close() // the lock goes, as when a process ends
	f.file = nil
	return mustOpen(t, f.path, Options{Geometry: g, Memory: memory})
}

// fillSlab begins slab i and commits text in it.
func fillSlab(f *File, i int, seq uint64, text string) {
	mem, committed := f.Slab(i)
	f.Begin(i, seq)
	n := copy(mem, text)
	*committed = uint64(n)
}

// pendingIn returns what is pending, and fails on an error.
func pendingIn(t testing.TB, f *File) (batches []Batch) {
	t.Helper()
	for b, err := range f.Pending() {
		if err != nil {
			t.Fatal(err)
		}
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
	if err != nil || !r.Complete() {
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
	if err != nil {
		t.Fatal(err)
	}
	return b
}
