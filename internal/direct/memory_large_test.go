//go:build linux && !race

package direct

import "testing"

// TestLargePages: where a set is large enough for large pages it begins where
// one can.
func TestLargePages(t *testing.T) {
	for range 20 {
		s, err := NewMemorySet(3, largePage)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Free()
		if b := s.Bytes(0); !aligned(b, largePage) {
			t.Fatalf("it begins at %#x", address(b))
		}
	}
}
