//go:build linux

package slab

import (
	"bytes"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// walled returns a page with pages on both sides that may not be touched.
func walled(t *testing.T) []byte {
	t.Helper()
	size := os.Getpagesize()
	memory, err := unix.Mmap(-1, 0, 3*size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(memory); err != nil {
			t.Error(err)
		}
	})
	for _, wall := range [][]byte{memory[:size], memory[2*size:]} {
		if err := unix.Mprotect(wall, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	return memory[size : 2*size : 2*size]
}

// TestPutStaysInside: nothing is read in front of the lines or behind them, nor
// written in front of the slab or behind it.
func TestPutStaysInside(t *testing.T) {
	from, to := walled(t), walled(t)
	for i := range from {
		from[i] = "line\n"[i%5]
	}
	for n := 1; n <= 300; n++ {
		for _, p := range [][]byte{from[:n], from[len(from)-n:]} {
			for _, buf := range [][]byte{to[:n:n], to[len(to)-n:]} {
				o := &opened{end: n, committed: new(uint64), buf: buf}
				o.mu.Lock()
				o.putUnlock(p)
				if !bytes.Equal(buf, p) || o.lines != bytes.Count(p, newline) {
					t.Fatalf("%d bytes: %q and %d lines, want %q", n, buf, o.lines, p)
				}
			}
		}
	}
}
