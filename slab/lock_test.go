package slab

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestLock: two holders at a time would lose a count, and the race detector
// would see them.
func TestLock(t *testing.T) {
	const goroutines, each = 8, 5000
	for _, alone := range []bool{false, true} {
		l := lock{alone: alone}
		n := 0
		var wg sync.WaitGroup
		for g := range goroutines {
			wg.Go(func() {
				for i := range each {
					l.Lock()
					was := n
					if i%100 == g {
						runtime.Gosched() // the holder loses its thread
					}
					n = was + 1
					l.Unlock()
				}
			})
		}
		wg.Wait()
		if n != goroutines*each {
			t.Errorf("alone %t: %d turns, want %d", alone, n, goroutines*each)
		}
	}
}

// TestLockedForLong: all who wait get the lock in the end when its holder kept
// it for longer than anybody spins.
func TestLockedForLong(t *testing.T) {
	var l lock
	l.Lock()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			l.Lock()
			defer l.Unlock()
		})
	}
	time.Sleep(5 * time.Millisecond)
	l.Unlock()
	wg.Wait()
}

// TestLockLeavesTheClockOfABubble: waiting for the lock takes no time of
// testing/synctest, so that what is tested there does not depend on who met
// whom.
func TestLockLeavesTheClockOfABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lock
		l.Lock()
		begin := time.Now()
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				l.Lock()
				defer l.Unlock()
			})
		}
		for range 20 * yields {
			runtime.Gosched()
		}
		l.Unlock()
		wg.Wait()
		if took := time.Since(begin); took != 0 {
			t.Errorf("the clock moved by %v", took)
		}
	})
}
