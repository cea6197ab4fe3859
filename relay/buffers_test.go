package relay

import "testing"

// Buffers are large while few are in use, and the pool takes each size back.
func TestBuffersInUse(t *testing.T) {
	var p buffers
	p.init(0)
	for range 2 {
		var lent []*buffer
		sizes := map[int]int{}
		for range 2 * maxLargeBuffers {
			b := p.get()
			lent = append(lent, b)
			sizes[len(b.b)]++
		}
		if sizes[largeBuffer] != maxLargeBuffers || sizes[smallBuffer] != maxLargeBuffers {
			t.Errorf("%v buffers by size", sizes)
		}
		for _, b := range lent {
			p.put(b)
		}
	}
	for _, size := range bufferSizes {
		var p buffers
		p.init(size)
		for range 2 * maxLargeBuffers {
			if n := len(p.get().b); n != size {
				t.Fatalf("a buffer of %d bytes instead of %d", n, size)
			}
		}
	}
}
