//go:build linux

package slab

import (
	"bytes"
	"testing"

	"github.com/rollway/rollway/internal/testkit"
)

// TestPutStaysInside: nothing is read before or after the lines, nor written
// before or after the slab.
func TestPutStaysInside(t *testing.T) {
	from, to := testkit.GuardedPage(t), testkit.GuardedPage(t)
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
