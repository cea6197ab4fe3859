//go:build linux || darwin

package slab_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/rollway/rollway/slab"
)

// BenchmarkPersist compares a Write to slabs in a file with one to slabs on the
// heap, in front of a destination that costs nothing. Compare within one run:
//
//	go test -run '^$' -bench Persist -count 10 ./slab
func BenchmarkPersist(b *testing.B) {
	dir, err := os.MkdirTemp("/dev/shm", "slab-bench-")
	if err != nil {
		dir = b.TempDir()
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	for _, size := range []int{100, 256, 1000} {
		line := append(bytes.Repeat([]byte{'x'}, size-1), '\n')
		for name, path := range map[string]string{"heap": "", "file": filepath.Join(dir, "slabs")} {
			b.Run(fmt.Sprintf("%d/%s", size, name), func(b *testing.B) {
				w, err := slab.New(io.Discard, slab.Options{Persist: path})
				if err != nil {
					b.Fatal(err)
				}
				defer w.Close()
				for b.Loop() {
					w.Write(line)
				}
			})
		}
	}
}
