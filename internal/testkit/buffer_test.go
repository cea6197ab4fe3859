package testkit

import (
	"io"
	"sync"
	"testing"
)

func TestBuffer(t *testing.T) {
	var b Buffer
	var writers sync.WaitGroup
	for range 10 {
		writers.Go(func() {
			for range 10 {
				io.WriteString(&b, "line\n")
				if said := b.String(); len(said)%5 > 0 {
					t.Errorf("a part of a write: %q", said)
				}
			}
		})
	}
	writers.Wait()
	if len(b.String()) != 500 || b.Tail(3) != "ne\n" || b.Tail(501) != b.String() {
		t.Errorf("%d bytes, the last are %q", len(b.String()), b.Tail(3))
	}
}
