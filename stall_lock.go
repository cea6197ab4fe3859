package rollway

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// stallLock is a mutex whose lock gives up. A caller gives up when one holder has
// kept the lock for the bound; after that no caller waits until that holder releases
// it. While the lock changes hands, a caller waits up to slowBounds times the bound.
// The zero value is unlocked. The lock also counts its turns: those that write a
// line, and others, such as a flush.
//
// Invariants: state grows at each lock and unlock, so it differs for each holder. A
// waiter is in the queue before its last attempt before sleeping, so an unlock is
// seen by that attempt or sees the waiter. A waiter that leaves after it was woken
// passes the wake-up on. A waiter that has spent a tenth of its time gets the lock
// handed over, so that later callers cannot starve it.
type stallLock struct {
	state atomic.Uint64
	stuck atomic.Uint64 // state of the holder last found stuck

	waiting atomic.Int32 // len(queue), for readers without mu
	mu      sync.Mutex
	queue   []*waiter // guarded by mu; sleeping waiters, each once
}

// The state has two counters. The lock is held while one of them is odd.
const (
	lineTurn  = 1       // in the low 48 bits
	otherTurn = 1 << 48 // above; wrapping is harmless
	held      = lineTurn | otherTurn
)

// waiter is a caller that sleeps.
type waiter struct {
	turn  uint64        // lineTurn or otherTurn
	since time.Time     // start of the wait
	limit time.Duration // of the wait
	woken chan bool     // capacity 1; true hands the lock over
}

// spins is how often a caller yields and retries before it sleeps, which allocates.
const spins = 20

// slowBounds is how many bounds a caller waits for a lock in demand.
const slowBounds = 10

// lock acquires the lock to write a line, and reports whether it did.
func (l *stallLock) lock(bound time.Duration) bool {
	return l.try() || l.lockSlow(lineTurn, bound, slowBounds*bound)
}

// lockPatiently is lock for a caller that waits up to limit even if another caller
// has found the holder stuck.
func (l *stallLock) lockPatiently(turn uint64, limit time.Duration) bool {
	return l.tryTurn(turn) || l.lockSlow(turn, limit, limit)
}

func (l *stallLock) try() bool {
	state := l.state.Load()
	return state&held == 0 && l.state.CompareAndSwap(state, state+lineTurn)
}

func (l *stallLock) tryTurn(turn uint64) bool {
	state := l.state.Load()
	return state&held == 0 && l.state.CompareAndSwap(state, state+turn)
}

// hopeless reports whether a caller has already found the holder stuck.
func (l *stallLock) hopeless() bool {
	state := l.state.Load()
	return state&held != 0 && l.stuck.Load() == state
}

// spin tries to acquire the lock for a short time.
func (l *stallLock) spin(turn uint64, patient bool) bool {
	for range spins {
		if !patient && l.hopeless() {
			return false
		}
		runtime.Gosched()
		if l.tryTurn(turn) {
			return true
		}
	}
	return false
}

func (l *stallLock) lockSlow(turn uint64, bound, limit time.Duration) bool {
	patient := bound == limit
	if l.spin(turn, patient) {
		return true
	}
	if !patient && l.hopeless() {
		return false
	}
	w := &waiter{turn: turn, since: time.Now(), limit: limit, woken: make(chan bool, 1)}
	l.enqueue(w, false)
	holder := l.state.Load()
	timer := time.NewTimer(bound)
	defer timer.Stop()
	for {
		if l.tryTurn(turn) {
			l.leave(w)
			return true
		}
		select {
		case mine := <-w.woken: // dequeued
			if mine {
				return true
			}
			l.enqueue(w, true)
		case <-timer.C:
			now := l.state.Load()
			stuck := now == holder && now&held != 0
			if !stuck && time.Since(w.since) < limit {
				holder = now
				timer.Reset(bound)
				continue
			}
			if l.leave(w) || l.tryTurn(turn) {
				return true
			}
			if stuck {
				l.stuck.Store(holder)
			}
			return false
		}
	}
}

// enqueue adds a waiter; one that was there before goes to the front.
func (l *stallLock) enqueue(w *waiter, again bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := len(l.queue)
	if again {
		at = 0
	}
	l.queue = slices.Insert(l.queue, at, w)
	l.waiting.Store(int32(len(l.queue)))
}

// dequeueLocked removes the i-th waiter from the queue.
func (l *stallLock) dequeueLocked(i int) *waiter {
	w := l.queue[i]
	l.queue = slices.Delete(l.queue, i, i+1)
	l.waiting.Store(int32(len(l.queue)))
	return w
}

// leave removes a waiter that has the lock or gives up, and reports whether the lock
// was handed to it meanwhile. If an unlock woke it, another waiter may be asleep that
// needs the wake-up too.
func (l *stallLock) leave(w *waiter) (mine bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.queue, w); i >= 0 {
		l.dequeueLocked(i)
		return false
	}
	if <-w.woken {
		return true
	}
	l.wakeLocked()
	return false
}

// unlock ends the turn of a holder that wrote a line.
func (l *stallLock) unlock() { l.unlockTurn(lineTurn) }

func (l *stallLock) unlockTurn(turn uint64) {
	l.state.Add(turn)
	if l.waiting.Load() > 0 {
		l.wake()
	}
}

// wake hands the lock, which is free, to the first waiter if that has waited long,
// and otherwise only wakes it.
func (l *stallLock) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wakeLocked()
}

func (l *stallLock) wakeLocked() {
	if len(l.queue) == 0 {
		return
	}
	w := l.queue[0]
	mine := time.Since(w.since) > w.limit/10 && l.tryTurn(w.turn)
	l.dequeueLocked(0)
	w.woken <- mine // has room: a waiter is woken once each time it is queued
}

// turns returns how many lines have been written, and 1 if one is being written.
func (l *stallLock) turns() (ended, pending uint64) {
	lines := l.state.Load() & (otherTurn - 1)
	return lines / 2, lines & 1
}
