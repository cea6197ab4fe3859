//go:build linux

package ntcopy

import (
	"bytes"
	"testing"

	"github.com/rollway/rollway/internal/testkit"
)

// TestLinesStaysInside: nothing is read in front of the lines or behind them, nor
// written in front of the target or behind it.
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
