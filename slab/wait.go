package slab

import (
	"os"
	"sync"
	"time"

	"github.com/rollway/rollway/line"
)

// A waiter is a producer that found no slab and has the time to wait. Whoever
// frees a slab places the waiters' lines itself, in the order in which they
// came: none can be overtaken by its like, and no two threads hand the mutex
// back and forth while there is room.
type waiter struct {
	placing
	prev, next *waiter       // guarded by mu
	since      time.Duration // when the wait began, as Writer.age has it
	listed     bool          // guarded by mu; it is on the list
	closed     bool          // the Writer was closed before all lines had a place

	// With several shards:
	shard *shard // where it waits
	size  int    // bytes of the first of its lines
	term  *term  // where their place is, from start on; nil until they have one
	start int

	ready chan struct{} // holds one token, sent after the waiter was taken off the list
	timer *time.Timer   // nil until it is needed
}

// waiters are those who wait, guarded by Writer.mu; the pool is not.
//
// While there are some of a rank, no slab that this rank may use is free or open.
// So nobody's place can be taken by a later one of the same rank, and none waits
// for those of a lower rank.
type waiters struct {
	of   [ranks]waiterList
	full time.Duration // since when lines have found no room and no slab was freed, as Writer.age has it; or 0
	pool sync.Pool     // of *waiter

	served *waiter // off the lists and not told yet, linked; told by unlockServed
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

// serve takes wt off its list, to be told.
func (l *waiters) serve(wt *waiter) {
	l.of[wt.rank].remove(wt)
	wt.next, l.served = l.served, wt
}

// oldest returns when the longest of the waits began, or 0 if there is none.
func (l *waiters) oldest() (since time.Duration) {
	for r := range l.of {
		if head := l.of[r].head; head != nil && (since == 0 || head.since < since) {
			since = head.since
		}
	}
	return since
}

// wait queues a Write of p whose lines in pl found no place, until they have
// one, the Writer is closed, or patience is at its end. It is entered with mu
// held and leaves with it released.
func (w *Writer) wait(p []byte, pl placing, patience time.Duration) (n int, placed bool, err error) {
	wt := w.waiters.get()
	wt.placing = pl
	w.standUnlock(wt)
	placed = w.await(wt, patience)
	pl, closed := wt.placing, wt.closed
	w.waiters.put(wt)
	if closed {
		return len(p) - pl.left - len(pl.rest), false, os.ErrClosed
	}
	n, err = pl.result(len(p), w.opts.MaxLine)
	return n, placed, err
}

func (l *waiters) get() *waiter {
	if wt, _ := l.pool.Get().(*waiter); wt != nil {
		return wt
	}
	return &waiter{ready: make(chan struct{}, 1)}
}

func (l *waiters) put(wt *waiter) {
	wt.placing, wt.closed = placing{}, false
	wt.shard, wt.term = nil, nil
	l.pool.Put(wt)
}

// standUnlock puts wt at the end of its list and gives mu back.
func (w *Writer) standUnlock(wt *waiter) {
	w.fullLocked()
	wt.since = w.age()
	w.waiters.of[wt.rank].push(wt)
	w.shutOutLocked()
	w.napping = false // it is wanted
	w.wakeUnlock()
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
	w.waiters.of[wt.rank].remove(wt)
	w.dropLocked(full, wt.class, wt.rest)
	w.flight.vain = true
	w.mu.Unlock()
	return false
}

// shutOutLocked sees to it that nothing that comes later fits before those who
// wait.
func (w *Writer) shutOutLocked() {
	for r := w.filling.rank; r < ranks; r++ {
		if w.waiters.of[r].n > 0 {
			w.sealLocked()
		}
	}
}

// serveLocked places the lines of as many waiters as there is room for.
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
		for list.head != nil && w.placeLocked(&list.head.placing) {
			l.serve(list.head)
		}
	}
	w.shutOutLocked()
}

// unlockServed gives mu back and lets those go on who were taken off the lists.
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

// expelLocked takes all waiters off the lists and counts the lines that have no
// place as rejected.
func (w *Writer) expelLocked() {
	l := &w.waiters
	for r := range l.of {
		for wt := l.of[r].head; wt != nil; wt = l.of[r].head {
			wt.closed = true
			w.tally.rejected += line.Count(wt.rest)
			l.serve(wt)
		}
	}
}
