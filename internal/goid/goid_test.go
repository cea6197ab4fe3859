package goid

import (
	"sync"
	"testing"
)

// grow makes the stack move.
func grow(n int) int {
	var pad [1024]byte
	if n == 0 {
		return int(pad[0])
	}
	return grow(n-1) + int(pad[n%len(pad)])
}

func TestHash(t *testing.T) {
	if !Stable {
		t.Log("one shard for all goroutines here")
	}
	const goroutines, n = 1000, 8
	var mu sync.Mutex
	var counts [n]int
	var wg, hold sync.WaitGroup
	hold.Add(goroutines) // all at the same time, or they would share records
	for range goroutines {
		wg.Go(func() {
			first := Hash(n)
			hold.Done()
			hold.Wait()
			grow(100)
			if again := Hash(n); again != first {
				t.Errorf("the hash of a goroutine changed from %d to %d", first, again)
			}
			mu.Lock()
			counts[first]++
			mu.Unlock()
		})
	}
	wg.Wait()
	for i, c := range counts {
		if Stable && (c < goroutines/n/3 || c > goroutines/n*3) {
			t.Errorf("shard %d has %d of %d goroutines: %v", i, c, goroutines, counts)
		}
	}
	if Hash(1) != 0 {
		t.Error("one shard is 0")
	}
}

// TestStandIn: while a goroutine acts for another it has that one's hash.
func TestStandIn(t *testing.T) {
	const n = 1 << 20
	self, mine := Self(), Hash(n)
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			own := Hash(n)
			func() {
				defer func() { _ = recover() }()
				StandIn(self, func() {
					if got := Hash(n); got != mine {
						t.Errorf("hash %d, want that of the other, %d", got, mine)
					}
					panic("over")
				})
			}()
			if got := Hash(n); got != own {
				t.Errorf("afterwards the hash is %d, want %d", got, own)
			}
		})
	}
	wg.Wait()
}

func BenchmarkHash(b *testing.B) {
	for b.Loop() {
		Hash(8)
	}
}
