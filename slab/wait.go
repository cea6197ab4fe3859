package slab

import (
	"os"
	"sync"
	"time"

	"github.com/rollway/rollway/internal/linecount"
)

// A waiter is a producer that found no slab and has the time to wait. Whoever
// frees a slab places the waiters' lines itself, in the order in which they
// came: none can be overtaken by its like, and no two threads hand the mutex
// back and forth while there is room.
type waiter struct {
	placing
	prev, next *waiter       // guarded by mu
	listed     bool          // guarded by mu; it is on the list
	closed     bool          // the Writer was closed before all lines had a place
	ready      chan struct{} // holds one token, sent after the waiter was taken off the list
	timer      *time.Timer   // nil until it is needed
}

// waiters are those who wait, guarded by Writer.mu; the pool is not.
//
// While there are urgent ones, which may use the reserve, no slab is free and
// none is open. While there are others, none is free but the reserve and none
// is open but one of it. So nobody's place can be taken by a later one of his
// kind, and who may use the reserve does not wait for those who may not.
type waiters struct {
	urgent, plain waiterList
	pool          sync.Pool // of *waiter
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

// of returns the list that wt belongs to.
func (l *waiters) of(wt *waiter) *waiterList {
	if wt.urgent {
		return &l.urgent
	}
	return &l.plain
}

// wait queues a Write of p whose lines in pl found no place, until they have
// one, the Writer is closed, or patience is at its end. It is entered with mu
// held and leaves with it released.
func (w *Writer) wait(p []byte, pl placing, patience time.Duration) (n int, placed bool, err error) {
	l := &w.waiters
	wt, _ := l.pool.Get().(*waiter)
	if wt == nil {
		wt = &waiter{ready: make(chan struct{}, 1)}
	}
	wt.placing = pl
	l.of(wt).push(wt)
	w.shutOutLocked()
	w.napping = false // it is wanted
	wake := w.needWakeLocked()
	w.mu.Unlock()
	if wake {
		w.wakeUp()
	}

	placed = w.await(wt, patience)

	pl, closed := wt.placing, wt.closed
	wt.placing, wt.closed = placing{}, false
	l.pool.Put(wt)
	if closed {
		return len(p) - pl.left - len(pl.rest), false, os.ErrClosed
	}
	n, err = pl.result(len(p), w.opts.OversizeLimit)
	return n, placed, err
}

// await returns when wt is off the list, and reports whether its lines have a
// place. Those that have none when patience ends are dropped.
func (w *Writer) await(wt *waiter, patience time.Duration) (placed bool) {
	if patience == forever {
		<-wt.ready
		return !wt.closed
	}
	if wt.timer == nil {
		wt.timer = time.NewTimer(patience)
	} else {
		wt.timer.Reset(patience)
	}
	select {
	case <-wt.ready:
		wt.timer.Stop()
		return !wt.closed
	case <-wt.timer.C:
	}
	w.mu.Lock()
	if !wt.listed { // it was served or expelled just now
		w.mu.Unlock()
		<-wt.ready
		return !wt.closed
	}
	w.waiters.of(wt).remove(wt)
	w.dropLocked(timeout, wt.class, wt.rest)
	w.mu.Unlock()
	return false
}

// shutOutLocked sees to it that nothing that comes later fits before those who
// wait.
func (w *Writer) shutOutLocked() {
	if w.waiters.urgent.n > 0 || w.waiters.plain.n > 0 && !w.filling.kept {
		w.sealLocked()
	}
}

// serveLocked places the lines of as many waiters as there is room for and
// returns these, linked, for signal.
func (w *Writer) serveLocked() (served *waiter) {
	l := &w.waiters
	if l.urgent.head == nil && l.plain.head == nil {
		return nil
	}
	for _, list := range [...]*waiterList{&l.urgent, &l.plain} {
		for list.head != nil && w.placeLocked(&list.head.placing) {
			wt := list.head
			list.remove(wt)
			wt.next, served = served, wt
		}
	}
	w.shutOutLocked()
	return served
}

// expelLocked takes all waiters off the lists, counts the lines that have no
// place as rejected and returns the waiters, linked, for signal.
func (w *Writer) expelLocked() (all *waiter) {
	for _, list := range [...]*waiterList{&w.waiters.urgent, &w.waiters.plain} {
		for wt := list.head; wt != nil; wt = list.head {
			list.remove(wt)
			wt.closed = true
			w.tally.rejected += linecount.Of(wt.rest)
			wt.next, all = all, wt
		}
	}
	return all
}

// signal lets linked waiters go on. It is called without mu.
func signal(wt *waiter) {
	for wt != nil {
		next := wt.next // the waiter may be gone after the send
		wt.next = nil
		wt.ready <- struct{}{}
		wt = next
	}
}
