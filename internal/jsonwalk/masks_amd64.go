//go:build !race && !msan && !asan && !purego

package jsonwalk

import "golang.org/x/sys/cpu"

// masks is masksOf with the vectors that every amd64 processor has.
//
//go:noescape
func masks(b *[block]byte) (slashes, quotes, ctrls uint64)

// drop is dropEach, with vectors if there are those that it takes.
func drop(out, b *[beyond]byte, m uint64) {
	if shuffle {
		dropWords(out, b, m, &kept)
	} else {
		dropEach(out, b, m)
	}
}

//go:noescape
func dropWords(out, b *[beyond]byte, m uint64, kept *[256][8]byte)

var shuffle = cpu.X86.HasSSSE3 && cpu.X86.HasPOPCNT

// kept are the bytes of a word that stay, by the mask of those that do not.
var kept = func() (k [256][8]byte) {
	for m := range k {
		n := 0
		for i := range byte(8) {
			if m>>i&1 == 0 {
				k[m][n] = i
				n++
			}
		}
	}
	return k
}()
