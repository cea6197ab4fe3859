package relay

import "testing"

// The system tunes the buffers of the first directions whatever the budget, and those
// that come when half of it is taken have a part of what is left.
func TestShareOfABudget(t *testing.T) {
	for _, size := range []int64{-1, 0, 1 << 20, 32 << 20, 1 << 30} {
		b := budget{size: size}
		if got := b.share(); got != fullShare {
			t.Errorf("of %d bytes the first direction has %d", size, got)
		}
		if size <= 0 {
			continue
		}
		last := int64(fullShare)
		for n := 0; n < 10_000 && last > minShare; n++ {
			share := b.share()
			if share > last {
				t.Fatalf("of %d bytes, %d taken, a direction has %d after one with %d", size, b.held.Load(), share, last)
			}
			last = share
			b.held.Add(min(share, max(size/sharePart, minShare)))
		}
		if last != minShare || b.held.Load() > 2*size {
			t.Errorf("of %d bytes %d are taken, and the next direction has %d", size, b.held.Load(), last)
		}
	}
}
