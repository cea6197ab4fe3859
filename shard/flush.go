package shard

import (
	"bytes"
	"time"
)

// idleTicks is how many ticks in a row find nothing before run stops its ticker
// and waits for the next record to wake it.
const idleTicks = 8

// ioState is owned by run.
type ioState struct {
	ticker *time.Ticker
	tick   time.Duration
	watch  *time.Timer // runs Writer.stalled; started by enter
	idle   int
	batch  []*term   // taken off the queue, in order; changed by run under mu
	bufs   [][]byte  // of batch; what is not written yet. None: the batch is new
	lent   [][]byte  // of one call: the destination may change them
	torn   bool      // the last byte that the destination took of a batch was within a record
	paused bool      // the last call of the batch was not followed by its wait yet
	since  time.Time // of the first failure after the last progress of the batch

	announced lost      // losses that notices have told of
	owed      lost      // losses that notices tells of
	text      []byte    // of notices; what is not written yet
	textSize  int       // of text when it was whole, in bytes
	notices   uint64    // lines in text when it was whole
	noticeAt  time.Time // when announcing is tried again that has failed
	parting   bool      // it was tried because of Close

	// An episode of failure begins with a call of the destination that fails
	// and ends with one that does not.
	failing  bool
	blamed   bool      // a loss of this episode was reported
	reported time.Time // when OnError was last called
	tries    int       // calls that failed since the last progress
	hurried  bool      // a wait was cut short because of Close
}

// run owns the destination. It ends when Close was called and everything is
// done, or when the deadline of Shutdown has passed and no call of the
// destination is under way. A destination that ends its goroutine has its call
// booked as failed; another goroutine then goes on with what is in ioState.
func (w *Writer) run() {
	io, ended := &w.io, false
	defer func() {
		if !ended {
			go w.run()
		}
	}()
	io.tick = max(w.opts.FlushInterval/8, time.Millisecond)
	io.ticker = time.NewTicker(io.tick)
	defer io.ticker.Stop()
	io.watch = time.AfterFunc(time.Hour, w.stalled)
	defer io.watch.Stop()
	for {
		switch w.next() {
		case jobFlush:
			w.flush()
		case jobNotice:
			w.announce()
		case jobSync:
			w.syncBarriers()
		case jobReopen:
			w.reopen()
		case jobStop:
			ended = true
			w.finish()
			return
		}
	}
}

type job int

const (
	jobStop   job = iota
	jobFlush      // write io.batch
	jobNotice     // announce what was lost
	jobSync       // sync the destination for the barriers at the front
	jobReopen     // reopen the destination
)

// next waits for something to do.
func (w *Writer) next() job {
	for {
		w.keepTime()
		w.mu.Lock()
		switch {
		case w.abandoned:
			w.dropBatchLocked()
			w.stopped = true
			w.mu.Unlock()
			return jobStop
		case w.reopenDueLocked():
			w.mu.Unlock()
			return jobReopen
		case len(w.io.text) > 0:
			w.mu.Unlock()
			return jobNotice
		case len(w.io.batch) > 0:
			w.mu.Unlock()
			return jobFlush
		case w.passBarriersLocked():
			w.mu.Unlock()
			return jobSync
		case len(w.queue) > 0:
			w.io.batch = append(w.io.batch[:0], w.queue...)
			w.io.bufs = w.io.bufs[:0]
			w.queue = w.queue[:0]
			w.mu.Unlock()
			return jobFlush
		case w.noticeDue() || w.noticeLate():
			w.mu.Unlock()
			return jobNotice
		case w.isClosing():
			w.stopped = true
			w.mu.Unlock()
			return jobStop
		}
		w.mu.Unlock()
		w.park()
	}
}

func (w *Writer) isClosing() bool {
	select {
	case <-w.closing:
		return true
	default:
		return false
	}
}

// park waits until there may be something to do, and sends off what is due.
func (w *Writer) park() {
	if w.io.idle >= idleTicks && !w.noticeOwed() {
		w.io.ticker.Stop()
		w.dozing.Store(true)
		if w.empty() && !w.noticeOwed() { // or a record came before it could see dozing
			<-w.wake
		}
		w.dozing.Store(false)
		w.io.idle = 0
		w.io.ticker.Reset(w.io.tick)
		return
	}
	select {
	case <-w.wake:
		w.io.idle = 0
	case <-w.io.ticker.C:
		if w.sendOffDue(time.Now()) {
			w.io.idle = 0
		} else {
			w.io.idle++
		}
	}
}

// keepTime sends off what is due, where run has too much to do to park.
func (w *Writer) keepTime() {
	select {
	case <-w.io.ticker.C:
		w.sendOffDue(time.Now())
	default:
	}
}

// empty reports whether no shard holds a record.
func (w *Writer) empty() bool {
	for i := range w.shards {
		if t := w.shards[i].cur.Load(); t != nil && t != w.full && t.used() > w.base {
			return false
		}
	}
	return true
}

// sendOffDue sends off what would be too old at the next tick, unless mayGo has a
// reason to keep it. It reports whether any shard holds a record.
func (w *Writer) sendOffDue(now time.Time) (any bool) {
	for i := range w.shards {
		s := &w.shards[i]
		t := s.cur.Load()
		if t == nil || t == w.full || t.used() == w.base {
			continue
		}
		any = true
		t.since.CompareAndSwap(0, w.clock(now)) // its first writer is just about to
		age := time.Duration(w.clock(now) - t.since.Load())
		if age+w.io.tick > w.opts.FlushInterval && w.mayGo(s, now) {
			w.sendOff(s, t)
		}
	}
	return any
}

// mayGo reports whether a term of s that is due is to be sent off. It stays, and
// the room in it, while the destination fails, and while s would get no other
// term for it, unless others take every term as soon as it is free. That is so if
// one of them has none, or had none until less than a tick ago.
func (w *Writer) mayGo(s *shard, now time.Time) bool {
	if w.io.paused {
		return false
	}
	for i := range w.shards {
		if w.shards[i].cur.Load() == w.full {
			return true
		}
	}
	w.mu.Lock() // after that, or one that is relieved in between would be missed
	defer w.mu.Unlock()
	return w.clock(now)-w.relieved < int64(w.io.tick) || len(w.free) > 0 && w.mayTakeLocked(s)
}

// sendOffAll sends off every record that a shard holds.
func (w *Writer) sendOffAll() {
	for i := range w.shards {
		s := &w.shards[i]
		if t := s.cur.Load(); t != nil && t != w.full && t.used() > w.base {
			w.sendOff(s, t)
		}
	}
}

// flush writes the batch and frees its terms as they are done. It may be called
// again for a batch that it has not come to the end of.
func (w *Writer) flush() {
	if len(w.io.bufs) == 0 {
		if w.noticeDue() {
			w.announce()
		}
		for _, t := range w.io.batch {
			data := t.data()
			if t.records() == 0 {
				data = nil // a batch of none would say that the file ends
			}
			w.io.bufs = append(w.io.bufs, data)
		}
		w.io.since, w.io.paused = time.Time{}, false
	}
	for len(w.io.batch) > 0 {
		if w.io.paused {
			switch w.pause() {
			case gaveUp:
				w.dropFirst()
				w.freeWritten()
				continue
			case abandoned:
				return
			}
		}
		w.reopen()
		if !w.push() {
			return
		}
		w.freeWritten()
		w.keepTime()
	}
}

// freeWritten frees the terms at the front of the batch that are done.
func (w *Writer) freeWritten() {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for n < len(w.io.batch) && len(w.io.bufs[n]) == 0 {
		w.releaseLocked(w.io.batch[n])
		n++
	}
	w.io.batch = append(w.io.batch[:0], w.io.batch[n:]...)
	w.io.bufs = append(w.io.bufs[:0], w.io.bufs[n:]...)
}

// dropFirst drops what is left of the first buffer of the batch, but for the
// rest of a record of which the destination has taken a part: that stays and
// goes first.
func (w *Writer) dropFirst() {
	w.mu.Lock()
	t, rest := w.io.batch[0], w.io.bufs[0]
	keep := 0
	if w.io.torn {
		keep = bytes.IndexByte(rest, '\n') + 1
	}
	lost := t.records() - t.counted
	if keep > 0 && lost > 0 {
		lost--
	}
	t.counted += lost
	w.tally.gaveUp += lost
	w.tally.shards[t.owner.Load()].gaveUp += lost
	w.io.bufs[0] = rest[:keep]
	if lost > 0 {
		w.tally.lossErr = w.tally.lastErr
	}
	err := w.tally.lossErr
	w.mu.Unlock()
	if lost > 0 {
		w.blame(lost, err)
	}
}

// takenLocked books that the destination has taken n more bytes of the batch.
func (w *Writer) takenLocked(n int64) {
	w.tally.bytes += uint64(n)
	for i := 0; n > 0; i++ {
		t, b := w.io.batch[i], w.io.bufs[i]
		part := b[:min(int64(len(b)), n)]
		n -= int64(len(part))
		if len(part) > 0 { // a destination may have filled up what it took whole with spaces
			w.io.torn = !w.framed && len(part) < len(b) && part[len(part)-1] != '\n'
		}
		left := t.records() - t.counted
		if len(part) < len(b) {
			left = min(uint64(bytes.Count(part, newline)), left-1)
		}
		t.counted += left
		w.tally.written += left
		w.io.bufs[i] = b[len(part):]
	}
}

var newline = []byte{'\n'}
