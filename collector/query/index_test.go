package query

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

func TestIndex(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		alphabet := "aaaaaaaaab"
		if r.IntN(2) == 0 {
			alphabet = "ae7z\x00\xff\""
		}
		random := func(n int) (b []byte) {
			for range n {
				b = append(b, alphabet[r.IntN(len(alphabet))])
			}
			return b
		}
		lines, literal := random(r.IntN(300)), random(1+r.IntN(6))
		if got, want := index(lines, literal), bytes.Index(lines, literal); got != want {
			t.Fatalf("index(%q, %q) = %d, want %d", lines, literal, got, want)
		}
	}
}
