package testkit

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// GuardedPage returns a page between two pages that end the program when they are
// touched: for code that might read or write beyond its argument. It lives as long as
// the test.
func GuardedPage(t *testing.T) []byte {
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
