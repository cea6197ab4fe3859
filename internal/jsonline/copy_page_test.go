//go:build linux

package jsonline

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/rollway/rollway/internal/testkit"
)

// TestCopyStaysInside: nothing is read or written outside of the two strings.
func TestCopyStaysInside(t *testing.T) {
	from, to := testkit.GuardedPage(t), testkit.GuardedPage(t)
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
