package query

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rollway/rollway/collector/admission"
	"github.com/rollway/rollway/collector/journal"
)

// found is what one search came to.
type found struct {
	scanned  uint64 // lines looked at, or passed over by their frame's time
	matched  uint64
	missing  uint64        // records that are gone
	gap      *journal.Gap  // the first of them
	damaged  bool          // some are gone, but not by retention
	after    uint64        // offset after the last line that matched
	own      uint64        // offset after the last line of the query's tenant that was looked at
	reached  uint64        // offset of the line that would have come next
	away     time.Duration // from the lines: to read them, and until it was the query's turn
	used     time.Duration // by workers, to look at lines
	matching time.Duration // while a frame was read: see lens
	asked    bool          // where to begin; else what retention has deleted is not missing
	offsets  bool          // lines are kept with their offsets, as appendAt has them
	few      bool          // lines are wanted: the search begins with one worker
	later    bool          // turns come after those of searches for some lines

	tables *tables // of the frame that was read last; nil: lines are wanted
	batch  *batch  // what emit gets, instead of a line; nil: a line

	p    *admission.Principal // who pays for workers; nil: nobody
	at   *admission.Turn      // to look at lines; nil: nobody else has to
	scan *rangeScan           // that is under way; nil: none
	step func() bool          // is called in what takes long; false: the search is not wanted any more
	quit bool                 // step has returned false
}

// wait has the query wait for its turn.
func (f *found) wait(turn func()) {
	begin := time.Now()
	turn()
	f.away += time.Since(begin)
}

// rest is for what takes long, in a turn of f.at: others get theirs. The error is errStopped.
func (f *found) rest() error {
	if f.at != nil {
		f.wait(f.at.Yield)
	}
	if f.quit = f.quit || f.step != nil && !f.step(); f.quit {
		return errStopped
	}
	return nil
}

// find hands every line of the offsets [from, end) that matches q to emit, in
// order; emit ends the search by returning false. line is valid during the call
// only. Workers search ahead of it, see [rangeScan]; emit and tick are called by the goroutine of the
// caller, emit in a turn of f.at, tick after each part of the search and at least every flushEvery.
// An error of either ends the search, as does the end of ctx or of a. f gets the figures up to the
// last line that emit took, or up to reached. scanned does not count the frames that
// the reader leaves out for their time.
func (a *API) find(ctx context.Context, q *Query, from, end uint64, f *found, emit func(offset uint64, line []byte) (bool, error), tick func() error) error {
	minimum, maximum := q.TimeRange()
	if minimum > maximum || from >= end {
		return nil
	}
	s := a.newScan(q, from, end, false, f)
	s.most = streamBuffer
	s.fresh = func(p *part) { p.bytes, p.lines, p.hits = 0, p.lines[:0], p.hits[:0] }
	s.keep = func(p *part, offset uint64, line []byte) error {
		p.lines = append(p.lines, line...)
		p.hits = append(p.hits, hit{offset, len(p.lines), p.scanned})
		p.bytes = len(p.lines) + 24*len(p.hits)
		return nil
	}
	return s.run(ctx, f, func(p *part) (bool, error) {
		start := 0
		for i, h := range p.hits {
			more, err := emit(h.offset, p.lines[start:h.end])
			if err != nil || !more {
				next := h.offset + 1
				a.add(f, &found{scanned: h.scanned, matched: uint64(i + 1), after: next, own: next, reached: next})
				return more, err
			}
			start = h.end
		}
		a.add(f, &p.found)
		if cap(p.lines) <= 2*streamBuffer {
			s.recycle(p)
		}
		return true, nil
	}, tick)
}

// search is find for the goroutine of a worker: r is where the search begins, and tick is called
// after each frame and every tickBytes in it.
func (a *API) search(r reader, q *Query, end uint64, f *found, emit func(offset uint64, line []byte) (bool, error), tick func() error) error {
	for r.Offset() < end {
		f.reached = r.Offset()
		f.matching = 0
		if f.tables != nil {
			f.tables.begin = true
		}
		begin, away := time.Now(), f.away
		frame, ok, err := r.TryNext()
		f.away = away + time.Since(begin) - f.matching
		if f.quit {
			return errStopped
		}
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
			f.reached = min(r.Offset(), end)
			return nil
		}
		more, err := q.findIn(frame, end, f, emit, tick)
		if err != nil || !more {
			return err
		}
		f.reached = min(r.Offset(), end)
		if err := tick(); err != nil {
			return err
		}
	}
	f.reached = end
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
	if q.probe != nil {
		emit = q.probe.emitting(emit)
		defer q.probe.looked(time.Now(), f, f.away)
	}
	if f.at != nil {
		f.wait(f.at.Begin)
		defer f.at.End()
	}
	refers := f.tables != nil && bytes.IndexByte(lines, referenceMark) >= 0
	skips := !refers && q.tenant == nil && len(q.literal) > 0
	if len(lines) == 0 || !refers && !skips && !q.mayMatch(lines) {
		if offset < end {
			f.scanned += min(uint64(frame.Records), end-offset)
			f.own = max(f.own, q.ownIn(frame, end))
		}
		return true, nil
	}
	rest, ahead := f.rest, ahead{literal: -1, escape: -1}
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
		if n := emptyLines(lines, end-offset); n > 0 {
			f.scanned += uint64(n)
			offset += uint64(n)
			looked += n
			lines = lines[n:]
			continue
		}
		b := f.tables.references(lines, end-offset, tickBytes-looked)
		if f.batch = b; b != nil {
			next := lines[b.lines*referenceLen:]
			offset += uint64(b.lines)
			f.scanned += uint64(b.lines)
			looked += b.lines + len(b.rows)*b.table.average
			if len(b.rows) > 0 {
				f.matched += uint64(len(b.rows))
				f.own, f.after = offset, offset
				if more, err := emit(offset-1, lines[:len(lines)-len(next)]); err != nil || !more { // which may begin f anew
					return false, err
				}
			}
			lines = next
			continue
		}
		if skips {
			if n := ahead.begin(lines, q.literal); n > 0 {
				passed := min(uint64(bytes.Count(lines[:n], []byte{'\n'})), end-offset)
				f.scanned += passed
				offset += passed
				looked += n
				lines = lines[n:]
				continue
			}
		}
		n := bytes.IndexByte(lines, '\n') + 1
		if n == 0 {
			n = len(lines)
		}
		f.scanned++
		if q.owns(lines[:n]) {
			f.own = offset + 1
			matches := q.match(lines[:n], rest)
			if f.quit {
				return false, errStopped
			}
			if matches {
				f.matched++
				f.after = offset + 1
				if more, err := emit(offset, lines[:n]); err != nil || !more {
					return false, err
				}
			}
		}
		lines = lines[n:]
		looked += n
		offset++
	}
	return true, nil
}

// ahead is how many bytes of lines are left from the next literal and from the next escape on; -1: it
// is not known.
type ahead struct{ literal, escape int }

// begin returns where the line begins that has the next of either: no line before it has one.
func (a *ahead) begin(lines, literal []byte) int {
	left := len(lines)
	if a.literal < 0 || a.literal > left {
		a.literal = left - find(index(lines, literal), left)
	}
	if a.escape < 0 || a.escape > left {
		a.escape = left - find(bytes.IndexByte(lines, '\\'), left)
	}
	next := max(a.literal, a.escape)
	if next == 0 {
		return left
	}
	return bytes.LastIndexByte(lines[:left-next], '\n') + 1
}

// frequent is bytes by how many lines of logs have of them, the most first. Others are rare.
const frequent = " e\"0ot:rs21acnid54,36-978uhmbl.pfvkg_/\n[]Twy\rONFE{}S=()IZxDWRjJAMCLqPG@Q$U;HVzB*"

// index is bytes.Index for lines. It looks for the rarest byte of the literal, as far as that is not much
// more frequent than in other lines.
func index(lines, literal []byte) int {
	const each, some = 16, 64 // bytes for one that was found in vain
	at, rarest := 0, -1
	for i, c := range literal {
		rank := strings.IndexByte(frequent, c)
		if rank < 0 {
			rank = len(frequent)
		}
		if rank > rarest {
			at, rarest = i, rank
		}
	}
	for start, vain := 0, 0; ; vain++ {
		if vain > some+start/each {
			if n := bytes.Index(lines[start:], literal); n >= 0 {
				return start + n
			}
			return -1
		}
		n := bytes.IndexByte(lines[min(start+at, len(lines)):], literal[at])
		if n < 0 {
			return -1
		}
		if start += n; bytes.HasPrefix(lines[start:], literal) {
			return start
		}
		start++
	}
}

// find returns at, or end if nothing was found.
func find(at, end int) int {
	if at < 0 {
		return end
	}
	return at
}

// emptyLines returns how many lines are empty before the first that is not, of at most most lines. They
// do not match: see lens.
func emptyLines(lines []byte, most uint64) (n int) {
	for n < len(lines) && uint64(n) < most && lines[n] == '\n' {
		n++
	}
	return n
}

// owns reports whether a line is of the tenant whose lines are looked at.
func (q *Query) owns(line []byte) bool {
	return q.tenant == nil || string(journal.TenantOf(line)) == *q.tenant
}

// ownIn returns the offset after the last line in frame that q owns and that is before end; 0: there
// is no such line, or q is of all lines.
func (q *Query) ownIn(frame journal.Frame, end uint64) uint64 {
	next, lines := frame.First+uint64(frame.Records), frame.Lines
	for ; q.tenant != nil && len(lines) > 0; next-- {
		start := bytes.LastIndexByte(lines[:len(lines)-1], '\n') + 1
		if next <= end && q.owns(lines[start:]) {
			return next
		}
		lines = lines[:start]
	}
	return 0
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
// order. It searches spans from the end backwards, until it has enough. The memory of
// the pieces is taken from mem.
func (a *API) findLast(ctx context.Context, q *Query, from, end uint64, n int, f *found, mem *holding, tick func() error) ([][]byte, error) {
	minimum, maximum := q.TimeRange()
	if minimum > maximum || from >= end {
		return nil, nil
	}
	f.few = true
	s := a.newScan(q, from, end, true, f)
	if !q.picks() && q.tenant == nil && maximum == math.MaxInt64 {
		s.each = uint64(n)
	}
	s.most, s.early = math.MaxInt, math.MaxInt64
	s.fresh = func(p *part) { p.newest.most, p.newest.offsets = n, f.offsets }
	s.keep = func(p *part, offset uint64, line []byte) error {
		p.newest.add(offset, line)
		p.bytes = cap(p.newest.buf)
		return nil
	}
	var pieces [][]byte
	held, left := 0, n
	err := s.run(ctx, f, func(p *part) (bool, error) {
		a.add(f, &p.found)
		l := &p.newest
		l.head = max(l.head, len(l.ends)-left)
		if l.len() == 0 {
			return true, nil
		}
		pieces = append(pieces, l.lines())
		held += len(l.lines())
		left -= l.len()
		if held > a.o.MaxHeld {
			return false, errLastBytes
		}
		return left > 0, mem.take(cap(l.buf))
	}, tick)
	slices.Reverse(pieces)
	return pieces, err
}

// flushEvery is how long found lines may wait for more.
const flushEvery = 100 * time.Millisecond
