//go:build linux

package ntcopy

import (
	"bytes"
	"testing"

	"github.com/rollway/rollway/internal/testkit"
)

// TestLinesStaysInside: nothing is read before the lines or after them, nor
// written before the target or after it.
func TestLinesStaysInside(t *testing.T) {
	from, to := testkit.GuardedPage(t), testkit.GuardedPage(t)
	for i := range from {
		from[i] = "line\n"[i%5]
	}
	for n := 1; n <= 300; n++ {
		for _, p := range [][]byte{from[:n], from[len(from)-n:]} {
			for _, buf := range [][]byte{to[:n:n], to[len(to)-n:]} {
				if got := Lines(buf, p); !bytes.Equal(buf, p) || got != bytes.Count(p, newline) {
					t.Fatalf("%d bytes: %q and %d lines, want %q", n, buf, got, p)
				}
			}
		}
	}
}
