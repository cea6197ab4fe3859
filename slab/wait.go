package slab

import (
	"os"
	"sync"
)

// A waiter is a producer that found no slab under Block. Whoever frees a slab
// places the waiters' lines itself, in the order in which they came: none can
// be overtaken, and no two threads hand the mutex back and forth while there
// is room.
type waiter struct {
	placing
	next   *waiter
	ready  chan struct{} // holds one token, sent when the waiter has left the list
	closed bool          // the Writer was closed before all lines had a place
}

// waiterList is a list of waiters, guarded by Writer.mu; the pool is not. While
// there are any, no slab is free and none is open, so whoever comes later has
// to wait behind them.
type waiterList struct {
	head, tail *waiter
	n          int
	pool       sync.Pool // of *waiter
}

// wait queues a Write of p whose lines in pl found no place, until they have
// one or the Writer is closed. It is entered with mu held and leaves with it
// released.
func (w *Writer) wait(p []byte, pl placing) (int, error) {
	l := &w.waiters
	wt, _ := l.pool.Get().(*waiter)
	if wt == nil {
		wt = &waiter{ready: make(chan struct{}, 1)}
	}
	wt.placing = pl
	if l.head == nil {
		l.head = wt
	} else {
		l.tail.next = wt
	}
	l.tail = wt
	l.n++
	w.sealLocked() // so that nothing that comes later fits before it
	wake := w.needWakeLocked()
	w.mu.Unlock()
	if wake {
		w.wakeUp()
	}

	<-wt.ready

	pl, closed := wt.placing, wt.closed
	wt.placing, wt.next, wt.closed = placing{}, nil, false
	l.pool.Put(wt)
	if closed {
		return len(p) - pl.left - len(pl.rest), os.ErrClosed
	}
	return pl.result(len(p), w.opts.OversizeLimit)
}

// serveLocked places the lines of as many waiters as there is room for and
// returns these, linked, for signal.
func (w *Writer) serveLocked() (served *waiter) {
	l := &w.waiters
	if l.head == nil {
		return nil
	}
	served = l.head
	var last *waiter
	for l.head != nil && w.placeLocked(&l.head.placing) {
		last = l.head
		l.head = last.next
		l.n--
	}
	if l.head == nil {
		l.tail = nil
	} else {
		w.sealLocked()
	}
	if last == nil {
		return nil
	}
	last.next = nil
	return served
}

// expelLocked takes all waiters off the list, counts the lines that have no
// place as rejected and returns the waiters, linked, for signal.
func (w *Writer) expelLocked() *waiter {
	l := &w.waiters
	all := l.head
	for wt := all; wt != nil; wt = wt.next {
		wt.closed = true
		w.tally.rejected += countLines(wt.rest)
	}
	l.head, l.tail, l.n = nil, nil, 0
	return all
}

// signal lets linked waiters go on. It is called without mu.
func signal(wt *waiter) {
	for wt != nil {
		next := wt.next // the waiter may be gone after the send
		wt.ready <- struct{}{}
		wt = next
	}
}
