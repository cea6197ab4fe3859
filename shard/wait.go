package shard

import (
	"os"
	"slices"
	"sync/atomic"
	"time"
)

// Under Block, records that find no buffer stand in line, one line for all
// shards. A free buffer goes to the shard of the first in line, and before it
// is open to anybody, all that wait for this shard have their places in it, in
// their order: nobody is overtaken.

// A waiter is a record in line. Whoever has a place in a term must not take
// Writer.mu before its bytes are there: giveUpAll waits for them under it.
type waiter struct {
	shard *shard
	n     uint64        // bytes, with the newline
	turn  chan struct{} // has room for one token: look again

	state atomic.Int32 // one of waiting, placed, left
	term  *term        // set before state becomes placed
	start uint64       // of the place; set with term
}

// The states of a waiter. It is its own to leave, and others' to place.
const (
	waiting int32 = iota
	placed
	left
)

// makeRoom gets s another term. Where there is none it does as Options.Full
// says, and returns the error for records that have no place. It may return a
// place of n bytes instead.
func (w *Writer) makeRoom(s *shard, n, records uint64, until *time.Time) (*term, uint64, error) {
	if w.rotate(s) {
		return nil, 0, nil
	}
	if w.opts.Full == Block {
		return w.await(s, n, records, until)
	}
	w.mu.Lock()
	closed := w.closed
	w.mu.Unlock()
	if closed {
		s.rejected.Add(records)
		return nil, 0, os.ErrClosed
	}
	s.full.Add(records)
	return nil, 0, ErrBufferFull
}

// await stands in line for a place of n bytes in s, until *until, which it sets
// if this is the call's first wait.
func (w *Writer) await(s *shard, n, records uint64, until *time.Time) (*term, uint64, error) {
	var expired <-chan time.Time
	if w.opts.BlockTimeout > 0 {
		if until.IsZero() {
			*until = time.Now().Add(w.opts.BlockTimeout)
		}
		timer := time.NewTimer(time.Until(*until))
		defer timer.Stop()
		expired = timer.C
	}
	me := &waiter{shard: s, n: n, turn: make(chan struct{}, 1)}
	open, closed := w.standInLine(me)
	if open {
		return nil, 0, nil
	}
	for !closed && me.state.Load() == waiting {
		select {
		case <-me.turn:
			w.rotate(s)
		case <-w.closing:
			closed = true
		case <-expired:
			return w.stepOut(me, records, ErrBufferFull)
		}
	}
	return w.stepOut(me, records, os.ErrClosed)
}

// standInLine reports whether there may be room by now, or no room any more. Who
// gives the shard a term holds its mu too, and so sees all that stand in line for
// it.
func (w *Writer) standInLine(me *waiter) (open, closed bool) {
	me.shard.mu.Lock()
	defer me.shard.mu.Unlock()
	if t := me.shard.cur.Load(); t == nil || t.open() {
		return true, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false, true
	}
	w.waiters = append(w.waiters, me)
	w.wakeFirstLocked()
	return false, false
}

// stepOut leaves the line and returns the place that me has, or err.
func (w *Writer) stepOut(me *waiter, records uint64, err error) (*term, uint64, error) {
	if !me.state.CompareAndSwap(waiting, left) {
		return me.term, me.start, nil // also if its time is up: the place waits for its bytes
	}
	w.mu.Lock()
	w.waiters = slices.DeleteFunc(w.waiters, func(o *waiter) bool { return o == me })
	w.wakeFirstLocked()
	w.mu.Unlock()
	if err == ErrBufferFull {
		me.shard.full.Add(records)
	} else {
		me.shard.rejected.Add(records)
	}
	return nil, 0, err
}

// mayTakeLocked reports whether s is next to get a free term.
func (w *Writer) mayTakeLocked(s *shard) bool {
	return len(w.waiters) == 0 || w.waiters[0].shard == s
}

// grantLocked gives places in t to those who wait for s, in their order. It
// returns how many bytes they take, and whether all of them have one.
func (w *Writer) grantLocked(s *shard, t *term) (used uint64, all bool) {
	used, all = w.base, true
	w.waiters = slices.DeleteFunc(w.waiters, func(o *waiter) bool {
		if o.shard != s || !all {
			return false
		}
		if used+o.n > uint64(len(t.buf)) {
			all = false
			return false
		}
		o.term, o.start = t, used
		if o.state.CompareAndSwap(waiting, placed) { // or its time is up
			used += o.n
			o.wake()
		}
		return true
	})
	return used, all
}

// wakeFirstLocked has the first in line fetch a term, if there is one.
func (w *Writer) wakeFirstLocked() {
	if len(w.waiters) > 0 && len(w.free) > 0 {
		w.waiters[0].wake()
	}
}

func (o *waiter) wake() {
	select {
	case o.turn <- struct{}{}:
	default:
	}
}

// releaseLocked frees t, which has been dealt with.
func (w *Writer) releaseLocked(t *term) {
	w.tally.shards[t.owner.Load()].records += t.records()
	t.done.Store(0)
	t.counted = 0
	w.free = append(w.free, t)
	w.flushed++
	w.wakeFirstLocked()
}
