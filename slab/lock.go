package slab

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// lock is a mutex for critical sections of some ten nanoseconds, the copy of a line.
// It costs one atomic operation where a sync.Mutex costs two: Unlock is a plain store,
// because no goroutine needs to be woken. A contender retries with growing pauses.
// After some microseconds the holder's thread is probably not running, and all
// contenders but one sleep in queue.
//
// The pauses let the holder append many lines in a row on its own processor. Two
// goroutines that took turns line by line would spend their time fetching each
// other's cache lines.
//
// The zero value is unlocked.
type lock struct {
	state atomic.Uint32 // 1 while held
	alone bool          // read-only: there is one processor, so spinning is useless
	queue sync.Mutex    // held by the contender that retries while others sleep
}

func (l *lock) TryLock() bool { return l.state.CompareAndSwap(0, 1) }

func (l *lock) Lock() {
	if !l.TryLock() {
		l.lockBusy()
	}
}

// Unlock releases the lock. putLong in assembly is the only other code that does.
func (l *lock) Unlock() { l.state.Store(0) }

// lockBusy acquires the lock after TryLock failed.
//
// The pauses are about 0.2, 0.8, 3 and 12 µs. Factors from two to eight and last
// pauses from 5 to 20 µs made no measurable difference.
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
		if n < yields || !shortSleep(n-yields) {
			runtime.Gosched() // the holder may be a goroutine without a thread
		}
	}
}

// lookAfter tries to acquire the lock after pause turns of an empty loop.
func (l *lock) lookAfter(pause int) bool {
	for range pause {
		runtime.KeepAlive(l) // keeps the compiler from removing the loop
	}
	return l.state.Load() == 0 && l.TryLock()
}

const (
	// Turns of an empty loop, each about a clock cycle.
	firstPause = 500
	lastPause  = firstPause * 4 * 4 * 4

	// yields is how often a contender yields to other goroutines before it yields to
	// other threads.
	yields = 16
)
