package spool

import "testing"

// BenchmarkAppend stores a slab of 64 KiB.
func BenchmarkAppend(b *testing.B) {
	s, err := Open(b.TempDir(), Options{MaxBytes: 256 << 20, Full: DropOldest})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	lines := []byte(texts(0, 64<<10/20))
	b.SetBytes(int64(len(lines)))
	for b.Loop() {
		if err := s.Append(lines); err != nil {
			b.Fatal(err)
		}
	}
}
