package direct

import "testing"

// TestMemorySet: every buffer begins on a page, has room behind its end, and
// holds what was put into it while its neighbours are filled.
func TestMemorySet(t *testing.T) {
	for _, size := range []int{1, Align, Align + 1, 300 << 10, 2 << 20} {
		const count = 5
		s, err := NewMemorySet(count, size)
		if err != nil {
			t.Fatal(err)
		}
		for i := range count {
			b := s.Bytes(i)
			if len(b) != size || cap(b) < size+Align || !aligned(b, Align) {
				t.Fatalf("%d bytes: buffer %d has %d, room for %d, at %#x", size, i, len(b), cap(b), address(b))
			}
			b = b[:cap(b)]
			for j := range b {
				b[j] = byte(i + 1)
			}
		}
		for i := range count {
			for j, c := range s.Bytes(i)[:size+Align] {
				if c != byte(i+1) {
					t.Fatalf("%d bytes: byte %d of buffer %d was changed by another", size, j, i)
				}
			}
		}
		if err := s.Free(); err != nil {
			t.Error(err)
		}
		if err := s.Free(); err != nil {
			t.Errorf("second time: %v", err)
		}
	}
}
