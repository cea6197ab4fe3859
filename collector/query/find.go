package query

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/rollway/rollway/collector/admission"
	"github.com/rollway/rollway/collector/journal"
)

// found is what one search came to.
type found struct {
	scanned uint64 // lines looked at, or passed over by their frame's time
	matched uint64
	missing uint64        // records that are gone
	gap     *journal.Gap  // the first of them
	damaged bool          // some are gone, but not by retention
	after   uint64        // offset after the last line that matched
	reached uint64        // offset of the line that would have come next
	away    time.Duration // from the lines: to read them, and until it was the query's turn
	asked   bool          // where to begin; else what retention has deleted is not missing
	offsets bool          // lines are kept with their offsets, as appendAt has them

	at *admission.Turn // to look at lines; nil: nobody else has to
}

// wait has the query wait for its turn.
func (f *found) wait(turn func()) {
	begin := time.Now()
	turn()
	f.away += time.Since(begin)
}

// find hands every line of the offsets [from, end) that matches q to emit, in
// order; emit ends the search by returning false. line is valid during the call
// only. tick is called after each frame and every tickBytes in it, and ends the
// search by an error, as does the end of ctx or of a. scanned does not count the frames that
// the reader leaves out for their time.
func (a *API) find(ctx context.Context, q *Query, from, end uint64, f *found, emit func(offset uint64, line []byte) (bool, error), tick func() error) (err error) {
	minimum, maximum := q.TimeRange()
	if minimum > maximum || from >= end {
		return nil
	}
	r := a.src.newReader(from)
	defer func() { err = errors.Join(err, r.Close()) }()
	q.configure(r)
	alive := func() error { return cmp.Or(context.Cause(a.ctx), context.Cause(ctx)) }
	between := func() error {
		if err := alive(); err != nil {
			return err
		}
		return tick()
	}
	for r.Offset() < end {
		f.reached = r.Offset()
		if err := alive(); err != nil {
			return err
		}
		begin := time.Now()
		frame, ok, err := r.TryNext()
		f.away += time.Since(begin)
		var gap *journal.Gap
		switch {
		case errors.As(err, &gap):
			if gap.To < gap.From {
				return err // the journal lost its end meanwhile
			}
			if gap.From < end && (f.asked || !gap.Retention) {
				f.missing += min(gap.To, end) - gap.From
				f.damaged = f.damaged || a.damage(gap)
				if f.gap == nil {
					f.gap = gap
				}
			}
			continue
		case err != nil:
			return err
		case !ok:
			return nil
		}
		before, matchedBefore := f.scanned, f.matched
		more, err := q.findIn(frame, end, f, emit, between)
		a.stats.scanned.Add(f.scanned - before)
		a.stats.matched.Add(f.matched - matchedBefore)
		if err != nil || !more {
			return err
		}
		f.reached = r.Offset()
		if err := tick(); err != nil {
			return err
		}
	}
	return nil
}

// damage reports whether something else than retention has made the gap.
func (a *API) damage(gap *journal.Gap) bool { return !gap.Retention && gap.To > a.src.first() }

// mayBeMissing is what a reader of some lines is told of damage.
const mayBeMissing = "the journal is damaged where lines of yours may have been"

// tickBytes is how many bytes of lines are searched at a time. A frame can hold
// many more, and to match one line against many terms takes a while.
const tickBytes = 64 << 10

// findIn is find for one frame; between is called every tickBytes.
func (q *Query) findIn(frame journal.Frame, end uint64, f *found, emit func(uint64, []byte) (bool, error), between func() error) (more bool, err error) {
	offset, lines := frame.First, frame.Lines
	if f.at != nil {
		f.wait(f.at.Begin)
		defer f.at.End()
	}
	if len(lines) == 0 || !q.mayMatch(lines) {
		if offset < end {
			f.scanned += min(uint64(frame.Records), end-offset)
		}
		return true, nil
	}
	for looked := 0; len(lines) > 0 && offset < end; {
		if looked > tickBytes {
			looked = 0
			f.reached = offset
			if f.at != nil {
				f.wait(f.at.Yield)
			}
			if err := between(); err != nil {
				return false, err
			}
		}
		n := bytes.IndexByte(lines, '\n') + 1
		if n == 0 {
			n = len(lines)
		}
		f.scanned++
		if n > 1 && (q.tenant == nil || string(journal.TenantOf(lines[:n])) == *q.tenant) && q.Match(lines[:n]) {
			f.matched++
			f.after = max(f.after, offset+1)
			if more, err := emit(offset, lines[:n]); err != nil || !more {
				return false, err
			}
		}
		lines = lines[n:]
		looked += n
		offset++
	}
	return true, nil
}

// newest keeps the last lines of one search.
type newest struct {
	most    int
	offsets bool // each line is with its offset
	buf     []byte
	ends    []int // in buf, of every line since head 0
	head    int   // index in ends of the oldest line kept
}

func (l *newest) add(offset uint64, line []byte) {
	if l.offsets {
		l.buf = appendAt(l.buf, offset, line)
	} else {
		l.buf = append(l.buf, line...)
	}
	l.ends = append(l.ends, len(l.buf))
	if l.len() > l.most {
		l.head++
	}
	// Move what is kept to the front before what is not takes up much.
	if start := l.start(); start > 64<<10 && start > len(l.buf)/4 {
		l.buf = l.buf[:copy(l.buf, l.buf[start:])]
		l.ends = l.ends[:copy(l.ends, l.ends[l.head:])]
		l.head = 0
		for i := range l.ends {
			l.ends[i] -= start
		}
	}
}

func (l *newest) len() int { return len(l.ends) - l.head }

func (l *newest) start() int {
	if l.head == 0 {
		return 0
	}
	return l.ends[l.head-1]
}

// lines are those kept, in a row.
func (l *newest) lines() []byte { return l.buf[l.start():] }

// errLastBytes is turned into a message with the limit by its caller.
var errLastBytes = errors.New("lines of last= need too much memory")

// errBusy is the answer while other queries hold what memory there is.
var errBusy = errors.New("queries hold as much memory as they may, yours or all together; try again later, or read in ascending order with from and limit")

// holding is what one query holds of API.memory.
type holding struct {
	memory *admission.Resource
	p      *admission.Principal
	n      int64 // bytes
}

// take takes n bytes more; below 0 it gives them back.
func (h *holding) take(n int) error {
	if n < 0 {
		h.memory.Release(h.p, int64(-n))
	} else if !h.memory.Acquire(h.p, int64(n)) {
		return errBusy
	}
	h.n += int64(n)
	return nil
}

func (h *holding) release() { h.memory.Release(h.p, h.n) }

// findLast returns the newest n matching lines of [from, end), as pieces in
// order. It searches windows from the end backwards, each four times the size
// of the one before, so that what is found near the end is found fast. The memory of
// the pieces is taken from mem.
func (a *API) findLast(ctx context.Context, q *Query, from, end uint64, n int, f *found, mem *holding, tick func() error) ([][]byte, error) {
	var pieces [][]byte
	held := 0
	window := uint64(max(4*n, 16<<10))
	for high := end; high > from && n > 0; window *= 4 {
		low := from
		if high-from > window {
			low = high - window
		}
		l := &newest{most: n, offsets: f.offsets}
		err := a.find(ctx, q, low, high, f, func(offset uint64, line []byte) (bool, error) {
			had := cap(l.buf)
			l.add(offset, line)
			if err := mem.take(cap(l.buf) - had); err != nil {
				return false, err
			}
			if held+len(l.lines()) > a.o.MaxHeld {
				return false, errLastBytes
			}
			return true, nil
		}, tick)
		if err != nil {
			return nil, err
		}
		if l.len() > 0 {
			pieces = append([][]byte{l.lines()}, pieces...)
			held += len(l.lines())
			n -= l.len()
		}
		high = low
	}
	return pieces, nil
}

// flushEvery is how long found lines may wait for more.
const flushEvery = 100 * time.Millisecond
