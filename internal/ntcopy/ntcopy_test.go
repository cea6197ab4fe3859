package ntcopy

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestCopy copies at every alignment of both sides and lengths around those
// where the way changes, and looks at the bytes beside the target too.
func TestCopy(t *testing.T) {
	const room = 4 * line
	r := rand.New(rand.NewPCG(1, 2))
	src := make([]byte, least+2*room)
	for i := range src {
		src[i] = byte(r.Uint32())
	}
	for _, length := range []int{0, 1, line, least - 1, least, least + 1, least + line - 1, least + line} {
		for to := range line {
			from := int(r.Uint32N(line))
			dst := bytes.Repeat([]byte{0xA5}, least+2*room)
			want := bytes.Clone(dst)
			copy(want[room+to:], src[from:from+length])
			if n := Copy(dst[room+to:room+to+length], src[from:]); n != length {
				t.Fatalf("Copy of %d bytes returned %d", length, n)
			}
			if !bytes.Equal(dst, want) {
				t.Fatalf("%d bytes from +%d to +%d: wrong bytes", length, from, to)
			}
		}
	}
}

// TestShorter takes the length of the shorter one, as copy does.
func TestShorter(t *testing.T) {
	long, short := make([]byte, 3*least), bytes.Repeat([]byte{1}, 2*least)
	if n := Copy(long, short); n != len(short) || long[len(short)-1] != 1 || long[len(short)] != 0 {
		t.Errorf("to a longer one: %d", n)
	}
	if n := Copy(short[:least], long); n != least {
		t.Errorf("to a shorter one: %d", n)
	}
}

// BenchmarkCopy copies from a source that the processor has at hand to the next
// place of 64 MiB, as the records of a shard.Writer are.
func BenchmarkCopy(b *testing.B) {
	for _, size := range []int{4 << 10, 16 << 10, 64 << 10, 300 << 10} {
		for name, f := range map[string]func(dst, src []byte) int{
			"caches": func(dst, src []byte) int { return copy(dst, src) },
			"past":   Copy,
		} {
			b.Run(fmt.Sprintf("%d/%s", size, name), func(b *testing.B) {
				src, dst := make([]byte, size), make([]byte, 64<<20)
				clear(dst)
				b.SetBytes(int64(size))
				at := 0
				for b.Loop() {
					if at+size > len(dst) {
						at = 0
					}
					f(dst[at:], src)
					at += size + 1
				}
			})
		}
	}
}
