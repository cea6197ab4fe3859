package rollway

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// stallLock is a mutex whose lock gives up on a holder that is stuck. A caller
// waits as long as the lock changes hands; when one holder keeps it for longer
// than the bound, that caller gives up, and every later one gives up at once
// until the holder lets go. The zero value is unlocked.
//
// Invariants: state grows by one at each lock and at each unlock, so it is odd
// while the lock is held, and differs for each holder; a waiter is in the queue
// before it tries the lock for the last time before sleeping, so an unlock
// either is seen by that try or sees the waiter and wakes it; a waiter that
// leaves after it was woken passes the wake-up on.
type stallLock struct {
	state  atomic.Uint64
	stuck  atomic.Uint64 // the state of the holder last found stuck
	others atomic.Uint64 // turns given back by unlockOther

	waiting atomic.Int32 // len(queue), to be read without mu
	mu      sync.Mutex
	queue   []chan struct{} // guarded by mu; of sleeping waiters, each its own
}

// spins is how often a caller yields and tries again before it sleeps, for
// which it allocates.
const spins = 20

// lock reports whether the caller now holds the lock. With patience it waits
// out its bound also for a holder that another caller has found stuck.
func (l *stallLock) lock(bound time.Duration, patient bool) bool {
	return l.try() || l.lockSlow(bound, patient)
}

func (l *stallLock) try() bool {
	state := l.state.Load()
	return state&1 == 0 && l.state.CompareAndSwap(state, state+1)
}

func (l *stallLock) lockSlow(bound time.Duration, patient bool) bool {
	for range spins {
		if holder := l.state.Load(); !patient && holder&1 == 1 && l.stuck.Load() == holder {
			return false
		}
		runtime.Gosched()
		if l.try() {
			return true
		}
	}
	woken := make(chan struct{}, 1)
	l.enqueue(woken)
	holder := l.state.Load()
	timer := time.NewTimer(bound)
	defer timer.Stop()
	for {
		if l.try() {
			l.leave(woken)
			return true
		}
		select {
		case <-woken: // and out of the queue
			l.enqueue(woken)
		case <-timer.C:
			now := l.state.Load()
			if now == holder && now&1 == 1 {
				l.stuck.Store(holder)
				l.leave(woken)
				return false
			}
			holder = now
			timer.Reset(bound)
		}
	}
}

func (l *stallLock) enqueue(woken chan struct{}) {
	l.mu.Lock()
	l.queue = append(l.queue, woken)
	l.waiting.Store(int32(len(l.queue)))
	l.mu.Unlock()
}

// leave takes a waiter off the queue. If an unlock took it off already, another
// waiter may be asleep that this wake-up was meant for as well.
func (l *stallLock) leave(woken chan struct{}) {
	l.mu.Lock()
	i := slices.Index(l.queue, woken)
	if i >= 0 {
		l.queue = slices.Delete(l.queue, i, i+1)
		l.waiting.Store(int32(len(l.queue)))
	}
	l.mu.Unlock()
	if i < 0 {
		l.wakeOne()
	}
}

func (l *stallLock) unlock() {
	l.state.Add(1)
	if l.waiting.Load() > 0 {
		l.wakeOne()
	}
}

// unlockOther is unlock for a holder that did not write a line.
func (l *stallLock) unlockOther() {
	l.others.Add(1)
	l.unlock()
}

// turns returns how often the lock was held and given back.
func (l *stallLock) turns() uint64 { return l.state.Load() / 2 }

func (l *stallLock) wakeOne() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		return
	}
	l.queue[0] <- struct{}{} // it has room: a waiter is woken once for each time it is queued
	l.queue = slices.Delete(l.queue, 0, 1)
	l.waiting.Store(int32(len(l.queue)))
}
