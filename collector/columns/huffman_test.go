package columns

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestLiterals: what is read of a frame of literals, also of a damaged one, is what a zstd decoder reads, or
// is left to it.
func TestLiterals(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	e, b := encoder(t), new(Block)
	made, sound, torn := 0, 0, 0
	for range 3000 {
		plane := make([]byte, 1+r.IntN(5000))
		if r.IntN(10) == 0 {
			plane = make([]byte, 1+r.IntN(20_000))
		}
		spread := 1 + r.IntN(256)
		for i := range plane {
			plane[i] = byte(min(r.IntN(spread), r.IntN(spread)))
		}
		frame := bytes.Clone(e.packIntegers(plane))
		got, err := appendStored(nil, frame, len(plane))
		if err != nil || !bytes.Equal(got, plane) {
			t.Fatalf("%d bytes below %d: %v", len(plane), spread, err)
		}
		got, ok := b.literals(nil, frame, len(plane))
		if !ok {
			continue
		}
		if made++; !bytes.Equal(got, plane) {
			t.Fatalf("%d bytes below %d are others", len(plane), spread)
		}
		for range 20 {
			n := len(plane)
			switch at := r.IntN(len(frame)); r.IntN(4) {
			case 0:
				frame = frame[:at+1]
			case 1:
				n += r.IntN(3) - 1
			case 2:
				frame[r.IntN(min(20, len(frame)))] ^= 1 << r.IntN(8)
			default:
				frame[at] ^= 1 << r.IntN(8)
			}
			got, ok := b.literals(got[:0], frame, n)
			if !ok {
				torn++
				continue
			}
			sound++
			if want, err := AppendFrame(nil, frame, n); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%x of %d bytes, for a decoder: %v", frame, n, err)
			}
		}
	}
	if made < 1000 || sound < 1000 || torn < 10_000 {
		t.Errorf("%d frames of literals, %d damaged were read and %d not: the generator proves little", made, sound, torn)
	}
}
