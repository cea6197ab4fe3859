package testkit

import "runtime"

// Mallocs returns how many allocations a call of f makes: the fewest of ten calls,
// because the runtime's own goroutines allocate now and then. A call before them
// fills pools and buffers. Unlike testing.AllocsPerRun it counts the allocations of
// all goroutines, and does not round.
func Mallocs(f func()) uint64 {
	f()
	fewest := ^uint64(0)
	for range 10 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		if fewest = min(fewest, after.Mallocs-before.Mallocs); fewest == 0 {
			break
		}
	}
	return fewest
}
