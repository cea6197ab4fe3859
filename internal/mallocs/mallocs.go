// Package mallocs counts what tests want to be without allocations.
package mallocs

import "runtime"

// Of returns how many allocations a call of f makes, the fewest of ten, as the
// runtime's own goroutines allocate now and then. A call before them fills pools
// and buffers. Unlike testing.AllocsPerRun it counts those of all goroutines, and
// rounds nothing.
func Of(f func()) uint64 {
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
