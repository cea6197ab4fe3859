package slab

import "runtime"

// lockBusy takes mu, which TryLock found taken. The holder copies a line, so it
// is done within a microsecond, and to be put to sleep and woken costs a
// goroutine several: it looks again, ever more seldom, before it queues up. That
// it does not look all the time lets the holder place many lines in a row on its
// own processor; two that took turns line by line would spend their time on
// fetching each other's cache lines.
//
// The pauses are some 0.2, 0.8, 3 and 12 µs. Each factor between two and eight
// and each last pause between 5 and 20 µs was within the noise.
func (w *Writer) lockBusy() {
	for pause := firstPause; pause <= lastPause && !w.alone; pause *= 4 {
		for range pause {
			runtime.KeepAlive(w) // or nothing at all: the loop stays
		}
		if w.mu.TryLock() {
			return
		}
	}
	w.mu.Lock()
}

// Turns of an empty loop, each about a clock cycle.
const (
	firstPause = 500
	lastPause  = firstPause * 4 * 4 * 4
)
