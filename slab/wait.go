package slab

import (
	"os"
	"sync"
	"time"

	"github.com/rollway/rollway/line"
)

// A waiter is a Write that found no slab and may wait. The goroutine that frees a slab
// appends the waiters' lines, in the order in which they came: no line overtakes
// another of its rank, and waiters need not wake up to contend for the lock.
type waiter struct {
	appending
	prev, next *waiter       // guarded by mu
	since      time.Duration // age of the Writer when the wait began
	listed     bool          // guarded by mu; it is on the list
	closed     bool          // the Writer was closed before all lines had room

	// With several shards:
	shard *shard // the one that it waits for
	size  int    // bytes of the first of its lines
	term  *term  // where they have room, from start on; nil until then
	start int

	ready chan struct{} // gets one token after the waiter was taken off the list
	timer *time.Timer   // nil until it is needed
}

// waiters lists the waiters by rank, guarded by Writer.mu except for the pool.
//
// While a waiter of a rank exists, no slab that this rank may use is free or open. So
// no later line of the same rank overtakes it, and it never waits for lower ranks.
type waiters struct {
	of   [ranks]waiterList
	full time.Duration // age of the Writer since which lines find no room and no slab was freed; or 0
	pool sync.Pool     // of *waiter

	served *waiter // off the lists and not notified yet, linked; see unlockServed
}

type waiterList struct {
	head, tail *waiter
	n          int
}

func (l *waiterList) push(wt *waiter) {
	wt.listed, wt.prev, wt.next = true, l.tail, nil
	if l.head == nil {
		l.head = wt
	} else {
		l.tail.next = wt
	}
	l.tail = wt
	l.n++
}

func (l *waiterList) remove(wt *waiter) {
	if wt.prev == nil {
		l.head = wt.next
	} else {
		wt.prev.next = wt.next
	}
	if wt.next == nil {
		l.tail = wt.prev
	} else {
		wt.next.prev = wt.prev
	}
	wt.listed, wt.prev, wt.next = false, nil, nil
	l.n--
}

// serve takes wt off its list, for unlockServed.
func (l *waiters) serve(wt *waiter) {
	l.of[wt.rank].remove(wt)
	wt.next, l.served = l.served, wt
}

// oldest returns when the oldest wait began, or 0 if there is none.
func (l *waiters) oldest() (since time.Duration) {
	for r := range l.of {
		if head := l.of[r].head; head != nil && (since == 0 || head.since < since) {
			since = head.since
		}
	}
	return since
}

// wait queues a Write of p whose lines in pl found no room, until they have
// room, the Writer is closed, or the timeout ends. The caller holds mu; wait releases
// it.
func (w *Writer) wait(p []byte, pl appending, timeout time.Duration) (n int, appended bool, err error) {
	wt := w.waiters.get()
	wt.appending = pl
	w.enqueueUnlock(wt)
	appended = w.await(wt, timeout)
	pl, closed := wt.appending, wt.closed
	w.waiters.put(wt)
	if closed {
		return len(p) - pl.left - len(pl.rest), false, os.ErrClosed
	}
	n, err = pl.result(len(p), w.opts.MaxLine)
	return n, appended, err
}

func (l *waiters) get() *waiter {
	if wt, _ := l.pool.Get().(*waiter); wt != nil {
		return wt
	}
	return &waiter{ready: make(chan struct{}, 1)}
}

func (l *waiters) put(wt *waiter) {
	wt.appending, wt.closed = appending{}, false
	wt.shard, wt.term = nil, nil
	l.pool.Put(wt)
}

// enqueueUnlock puts wt at the end of its list and releases mu.
func (w *Writer) enqueueUnlock(wt *waiter) {
	w.fullLocked()
	wt.since = w.age()
	w.waiters.of[wt.rank].push(wt)
	w.sealForWaitersLocked()
	w.polling = false // run is needed now
	w.wakeUnlock()
}

// await returns when wt is off the list, and reports whether its lines have room. Lines
// that have none when the timeout ends are dropped.
func (w *Writer) await(wt *waiter, timeout time.Duration) (appended bool) {
	if timeout == forever {
		<-wt.ready
		return !wt.closed
	}
	if wt.timer == nil {
		wt.timer = time.NewTimer(timeout)
	} else {
		wt.timer.Reset(timeout)
	}
	select {
	case <-wt.ready:
		wt.timer.Stop()
		return !wt.closed
	case <-wt.timer.C:
	}
	w.mu.Lock()
	if !wt.listed { // it was served or rejected just now
		w.mu.Unlock()
		<-wt.ready
		return !wt.closed
	}
	w.waiters.of[wt.rank].remove(wt)
	w.dropLocked(full, wt.class, wt.rest)
	w.flight.timedOut = true
	w.mu.Unlock()
	return false
}

// sealForWaitersLocked seals the open slab if a waiter could use it, so that no later
// line overtakes the waiter.
func (w *Writer) sealForWaitersLocked() {
	for r := w.filling.rank; r < ranks; r++ {
		if w.waiters.of[r].n > 0 {
			w.sealLocked()
		}
	}
}

// serveLocked appends the lines of as many waiters as there is room for.
func (w *Writer) serveLocked() {
	l := &w.waiters
	if l.oldest() == 0 {
		return
	}
	if len(w.shards) > 0 {
		w.serveShardedLocked()
		return
	}
	for r := range l.of {
		list := &l.of[vital-rank(r)]
		for list.head != nil && w.appendLocked(&list.head.appending) {
			l.serve(list.head)
		}
	}
	w.sealForWaitersLocked()
}

// unlockServed releases mu and notifies the waiters that were taken off the lists.
func (w *Writer) unlockServed() {
	wt := w.waiters.served
	w.waiters.served = nil
	w.mu.Unlock()
	for wt != nil {
		next := wt.next // the waiter may be gone after the send
		wt.next = nil
		wt.ready <- struct{}{}
		wt = next
	}
}

// rejectWaitersLocked takes all waiters off the lists and counts their remaining lines as
// rejected.
func (w *Writer) rejectWaitersLocked() {
	l := &w.waiters
	for r := range l.of {
		for wt := l.of[r].head; wt != nil; wt = l.of[r].head {
			wt.closed = true
			w.tally.Rejected += line.Count(wt.rest)
			l.serve(wt)
		}
	}
}
