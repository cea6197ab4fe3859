package slab

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// lock is a mutex for holders that copy a line and are gone, within some ten
// nanoseconds. It costs one atomic operation where a sync.Mutex costs two: to
// give it back is a store, as there is never anybody to wake. Who finds it taken
// looks again by himself, ever more seldom; once that has lasted some
// microseconds the holder's thread is not running, and all but one of those who
// look sleep in a queue.
//
// That nobody looks all the time lets the holder place many lines in a row on
// its own processor; two that took turns line by line would spend their time on
// fetching each other's cache lines.
//
// The zero value is unlocked.
type lock struct {
	state atomic.Uint32 // 1 while held
	alone bool          // read-only: there is one processor, the holder waits for it
	queue sync.Mutex    // held by the one that looks while others sleep
}

func (l *lock) TryLock() bool { return l.state.CompareAndSwap(0, 1) }

func (l *lock) Lock() {
	if !l.TryLock() {
		l.lockBusy()
	}
}

// Unlock gives the lock back. Package-wide there is a second way: putLong.
func (l *lock) Unlock() { l.state.Store(0) }

// lockBusy takes the lock, which TryLock found taken.
//
// The pauses are some 0.2, 0.8, 3 and 12 µs. Each factor between two and eight
// and each last pause between 5 and 20 µs was within the noise.
func (l *lock) lockBusy() {
	if !l.alone {
		for pause := firstPause; pause <= lastPause; pause *= 4 {
			if l.lookAfter(pause) {
				return
			}
		}
	}
	l.queue.Lock()
	defer l.queue.Unlock()
	for n := 0; !l.TryLock(); n++ {
		if n < yields || !nap(n-yields) {
			runtime.Gosched() // the holder may be a goroutine without a thread
		}
	}
}

// lookAfter tries to take the lock after so many turns of an empty loop.
func (l *lock) lookAfter(pause int) bool {
	for range pause {
		runtime.KeepAlive(l) // or nothing at all: the loop stays
	}
	return l.state.Load() == 0 && l.TryLock()
}

const (
	// Turns of an empty loop, each about a clock cycle.
	firstPause = 500
	lastPause  = firstPause * 4 * 4 * 4

	// yields is how often the one who looks lets other goroutines run in his
	// place before he lets other threads.
	yields = 16
)
