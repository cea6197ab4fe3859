package query

import (
	"cmp"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/rollway/rollway/collector/admission"
)

// errStopped ends the search of a worker.
var errStopped = errors.New("the search was stopped")

// work searches spans until there is none left.
func (s *rangeScan) work() {
	defer s.group.Done()
	w := worker{rangeScan: s}
	w.turn.Use(s.api.o.Admission.CPU, s.p)
	w.turn.SetLow(s.later)
	defer w.leave()
	if w.sums {
		w.own = w.newPart()
	}
	for first := true; ; first = false {
		if w.span = s.begin(first, &w.turn); w.span == nil {
			if w.own != nil {
				_ = w.give() // errStopped
			}
			return
		}
		err := w.search()
		if err == errStopped || w.put(true, err) != nil || err != nil {
			return
		}
	}
}

// A worker searches one span after the other.
type worker struct {
	*rangeScan
	reader reader
	tables *tables // nil: lines are wanted
	turn   admission.Turn
	span   *span

	part  *part // not put yet
	own   *part // not given yet
	found found // since it was begun
	begun time.Time
}

// leave ends the worker. Its panic is the consumer's.
func (w *worker) leave() {
	what := recover()
	w.turn.End()
	if w.reader != nil {
		w.reader.Close() // only read from: there is nothing that Close could lose
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.workers--; what != nil {
		w.failure = fmt.Sprintf("%v\n%s", what, debug.Stack())
	}
	w.tell()
}

// search searches the span.
func (w *worker) search() error {
	if n := w.span.skip; n > 0 {
		w.beginPart(w.span.to)
		if w.query.tenant == nil { // else some may be others'
			w.found.scanned = w.span.to - w.span.from
		}
		if w.query.probe != nil {
			w.query.probe.seen.ByFilter.Add(int64(n))
		}
		return nil
	}
	if w.reader == nil {
		w.reader = w.api.src.newReader(w.span.from)
		w.query.configure(w.reader, &w.found)
		if w.rows != nil {
			w.tables = &tables{steps: w.steps}
		}
	} else if err := w.reader.Seek(w.span.from); err != nil {
		return err
	}
	w.reader.SetEnd(w.span.to)
	w.beginPart(w.span.from)
	return w.api.search(w.reader, w.query, w.span.to, &w.found, w.take, w.tick)
}

func (w *worker) beginPart(reached uint64) {
	if w.begun = time.Now(); w.own == nil {
		w.part = w.newPart()
	} else {
		w.part = new(part)
	}
	w.found = found{asked: w.asked, at: &w.turn, step: w.step, reached: reached, tables: w.tables}
}

// take adds a line to the part.
func (w *worker) take(offset uint64, line []byte) (bool, error) {
	w.part.scanned = w.found.scanned
	p := cmp.Or(w.own, w.part)
	var err error
	if w.found.batch != nil {
		err = w.rows(p, w.found.batch)
	} else {
		err = w.keep(p, offset, line)
	}
	switch {
	case err != nil || p.bytes < w.most:
		return true, err
	case w.own != nil && w.grow():
		return true, nil
	case w.own != nil:
		return true, w.give()
	}
	w.found.reached = offset + 1
	return true, w.put(false, nil)
}

// grow reports whether the worker's own part may be as large as it is, and take a bit more. All queries
// together leave three quarters of the memory to what cannot do without it.
func (w *worker) grow() bool {
	const step = 1 << 20
	n := int64(w.own.bytes - w.own.charged - w.most)
	if n < 0 {
		return true
	}
	n += step
	w.mu.Lock()
	defer w.mu.Unlock()
	memory := w.held.memory
	if w.held.n+n > w.share || memory.Used()+n > memory.Limit()/4 || w.held.take(int(n)) != nil {
		return false
	}
	w.own.charged += int(n)
	return true
}

// give gives the worker's own part to the consumer, once that has taken those that were given before,
// and begins another.
func (w *worker) give() error {
	held := false
	w.mu.Lock()
	for len(w.given) > 0 && !w.stopped {
		held = w.turn.Suspend() || held
		w.room.Wait()
	}
	stopped := w.stopped
	if !stopped {
		w.own.given = true
		w.given = append(w.given, w.own)
	}
	w.mu.Unlock()
	w.tell()
	if held {
		w.turn.Begin()
	}
	if stopped {
		return errStopped
	}
	w.own = w.newPart()
	return nil
}

// step is called while a block is looked at. It returns false to end that: the part is not put.
func (w *worker) step() bool {
	w.span.spent.Store(int64(time.Since(w.begun) - w.found.away))
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.stopped
}

// spent returns the time that the front's worker has used for a part that is not put.
func (s *rangeScan) spent() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.spans) == 0 {
		return 0
	}
	return time.Duration(s.spans[0].spent.Load())
}

// tick puts the part if the consumer waits for it.
func (w *worker) tick() error {
	w.mu.Lock()
	stopped, wanted := w.stopped, time.Since(w.begun) >= w.early && w.spans[0] == w.span && len(w.span.parts) == 0
	w.mu.Unlock()
	switch {
	case stopped:
		return errStopped
	case wanted:
		return w.put(false, nil)
	}
	return nil
}

// put puts the part, once there is room for it, and begins another. With done it is the last
// of the span; err is what has ended the search.
func (w *worker) put(done bool, err error) error {
	p := w.part
	w.found.used = time.Since(w.begun) - w.found.away
	p.found, p.span = w.found, w.span.offsets
	reached, held := p.reached, false // p is not the worker's any more once it is put
	w.mu.Lock()
	for !w.roomLocked() {
		held = w.turn.Suspend() || held
		w.room.Wait()
	}
	stopped := w.stopped
	if !stopped { // else it may not be whole: see step
		w.span.parts = append(w.span.parts, p)
		w.span.bytes += p.bytes
		w.span.done, w.span.err = done, err
		w.span.spent.Store(0)
	}
	w.mu.Unlock()
	w.tell()
	if held {
		w.turn.Begin()
	}
	switch {
	case stopped:
		return errStopped
	case !done:
		w.beginPart(reached)
	}
	return nil
}

// roomLocked reports whether the part may be put, and takes the memory for it.
func (w *worker) roomLocked() bool {
	if w.stopped || w.own != nil { // or it has figures alone
		return true
	}
	if w.spans[0] == w.span {
		return w.span.bytes < frontBytes
	}
	size := w.part.bytes
	if w.held.n+int64(size) > aheadBytes || w.held.take(size) != nil {
		return false
	}
	w.part.charged = size
	return true
}
