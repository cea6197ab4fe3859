// Package goid numbers goroutines: the address of the runtime's record of a goroutine is
// the same as long as it runs, and unique among those that run. Go gives goroutines no
// identity on purpose; this is only a way to distribute them.
package goid

import (
	"sync"
	"sync/atomic"
)

// Hash returns a value in [0, n) that depends only on the goroutine, or on the one that
// it acts for. It is 0 where goroutines cannot be told apart. n is positive.
func Hash(n uint32) uint32 {
	if n == 1 {
		return 0
	}
	// Multiplicative hashing (Knuth, The Art of Computer Programming, vol. 3,
	// section 6.4): records are some hundred bytes apart, so the low bits of
	// their addresses are equal.
	g := current()
	if standing.Load() > 0 {
		if other, ok := standIns.Load(g); ok {
			g = other.(uintptr)
		}
	}
	h := uint64(g) * 0x9E3779B97F4A7C15
	return uint32(h >> 32 * uint64(n) >> 32)
}

// Self returns the number of the goroutine, or 0 where goroutines have none.
func Self() uintptr { return current() }

var (
	standIns sync.Map     // from the number of a goroutine to that of the one it acts for
	standing atomic.Int32 // how many there are
)

// StandIn calls f. In f, Hash returns what it returns in the goroutine with that number.
func StandIn(number uintptr, f func()) {
	me := current()
	standIns.Store(me, number)
	standing.Add(1)
	defer func() {
		standing.Add(-1)
		standIns.Delete(me)
	}()
	f()
}
