package ntcopy

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestLines copies at every alignment of both sides and lengths around those
// where the way changes, and looks at the bytes beside the target too.
func TestLines(t *testing.T) {
	const room = 4 * line
	r := rand.New(rand.NewPCG(1, 2))
	src := make([]byte, least+2*room)
	for i := range src {
		src[i] = byte(r.Uint32N(20))
	}
	lengths := []int{least - 1, least, least + 1, least + line - 1, least + line}
	for n := range 5 * vector {
		lengths = append(lengths, n)
	}
	for _, length := range lengths {
		for to := range line {
			from := int(r.Uint32N(line))
			dst := bytes.Repeat([]byte{0xA5}, least+2*room)
			want := bytes.Clone(dst)
			copy(want[room+to:], src[from:from+length])
			if n, all := Lines(dst[room+to:], src[from:from+length]), bytes.Count(src[from:from+length], newline); n != all {
				t.Fatalf("Lines of %d bytes from +%d = %d, want %d", length, from, n, all)
			}
			if !bytes.Equal(dst, want) {
				t.Fatalf("%d bytes from +%d to +%d: wrong bytes", length, from, to)
			}
		}
	}
}

// BenchmarkLines copies from a source that the processor has at hand to the next
// place of 64 MiB, as lines are copied into the slabs of several shards.
func BenchmarkLines(b *testing.B) {
	for _, size := range []int{256, 4 << 10, 16 << 10, 64 << 10, 300 << 10} {
		for _, bm := range []struct {
			name string
			f    func(dst, src []byte) int
		}{{"caches", plain}, {"past", Lines}} {
			b.Run(fmt.Sprintf("%d/%s", size, bm.name), func(b *testing.B) {
				src, dst := make([]byte, size), make([]byte, 64<<20)
				clear(dst)
				b.SetBytes(int64(size))
				at := 0
				for b.Loop() {
					if at+size > len(dst) {
						at = 0
					}
					bm.f(dst[at:], src)
					at += size + 1
				}
			})
		}
	}
}
