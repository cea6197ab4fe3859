//go:build linux

package jsonline

import (
	"os"
	"strings"
	"testing"
	"unsafe"

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

// TestCopyStaysInside: nothing is read or written outside of the two strings.
func TestCopyStaysInside(t *testing.T) {
	from, to := walled(t), walled(t)
	copy(from, strings.Repeat("clean ", len(from)))
	for n := 1; n <= 200; n++ {
		for _, s := range [][]byte{from[:n], from[len(from)-n:]} {
			for _, dst := range [][]byte{to[:n:n], to[len(to)-n:]} {
				if !copyClean(dst, unsafe.String(&s[0], n)) || string(dst) != string(s) {
					t.Fatalf("%d bytes: %q, want %q", n, dst, s)
				}
				quoted := dst[:0:n]
				if got := string(AppendStringBytes(quoted, s)); got != `"`+string(s)+`"` {
					t.Fatalf("%d bytes: %q, want %q in quotes", n, got, s)
				}
			}
		}
	}
}
