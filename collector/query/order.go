package query

import (
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rollway/rollway/collector/query/pipe"
)

// A timedLine is a line as it goes out.
type timedLine struct {
	at     [timeLen]byte // as in the line, whose times compare as texts
	offset uint64
	text   []byte
}

const timeLen = len("2026-05-28T12:40:00.000000000Z")

// timeStart is what a canonical line begins with.
const timeStart = `{"time":"`

func newTimedLine(offset uint64, line []byte) (l timedLine) {
	if rest, ok := bytes.CutPrefix(line, []byte(timeStart)); ok {
		copy(l.at[:], rest)
	}
	l.offset = offset
	return l
}

// bytes is what l takes in memory.
func (l *timedLine) bytes() int { return cap(l.text) + 64 }

// compareTimes orders lines by time, and lines of one time by offset.
func compareTimes(a, b timedLine) int {
	return cmp.Or(bytes.Compare(a.at[:], b.at[:]), cmp.Compare(a.offset, b.offset))
}

// A timeOrder keeps the oldest or the newest lines of a search. With a limit it is a heap
// whose first line is the one to leave it.
type timeOrder struct {
	most    int // 0: all
	newest  bool
	offsets bool // each line is with its offset
	lines   []timedLine
}

func (o *timeOrder) full() bool { return o.most > 0 && len(o.lines) == o.most }

// add keeps a copy of a line, unless it would leave at once, and returns by how many bytes more are held.
func (o *timeOrder) add(offset uint64, line []byte) int {
	l := newTimedLine(offset, line)
	full, held := o.full(), 0
	if full {
		if compareTimes(l, o.lines[0]) > 0 != o.newest {
			return 0
		}
		if held = o.lines[0].bytes(); cap(o.lines[0].text) <= 2*len(line)+256 { // a far larger one would stay
			l.text = o.lines[0].text[:0]
		}
	}
	if o.offsets {
		l.text = appendAt(l.text, offset, line)
	} else {
		l.text = append(l.text, line...)
	}
	if full {
		o.lines[0] = l
		heap.Fix(o, 0)
	} else if o.lines = append(o.lines, l); o.full() {
		heap.Init(o)
	}
	return l.bytes() - held
}

// narrow returns q without lines that are too old or too new to be kept.
func (o *timeOrder) narrow(q *Query) *Query {
	if !o.full() {
		return q
	}
	at, err := time.Parse(time.RFC3339Nano, string(o.lines[0].at[:]))
	if err != nil {
		return q
	}
	since, until := &at, (*time.Time)(nil)
	if !o.newest {
		since, until = nil, &at
	}
	narrowed := q.within(since, until)
	narrowed.tenant = q.tenant
	return narrowed
}

// For container/heap.
func (o *timeOrder) Len() int           { return len(o.lines) }
func (o *timeOrder) Less(i, j int) bool { return compareTimes(o.lines[i], o.lines[j]) < 0 == o.newest }
func (o *timeOrder) Swap(i, j int)      { o.lines[i], o.lines[j] = o.lines[j], o.lines[i] }
func (o *timeOrder) Push(any)           { panic("not used") }
func (o *timeOrder) Pop() any           { panic("not used") }

// byTime returns what is found in the order of times: the newest lines with last, the oldest
// with limit. Like findLast it searches windows, from the end backwards for the newest: once
// there are enough lines, a window's frames that are too old are not read. The memory of
// the lines is taken from mem.
func (a *API) byTime(ctx context.Context, out *rows, req request, from uint64, mem *holding) ([][]byte, error) {
	o := &timeOrder{most: req.last, newest: req.last > 0, offsets: out.offsets}
	if req.pipes == nil && req.last == 0 {
		o.most = req.limit
	}
	held := 0
	keep := func(offset uint64, line []byte) (bool, error) {
		more := o.add(offset, line)
		if held += more; held > a.o.MaxHeld {
			return false, &limitError{fmt.Errorf("lines in the order of their times take more than %d bytes (limits.max_query); narrow them by since and until, ask for fewer with last or limit, or take order=arrival", a.o.MaxHeld)}
		}
		return true, mem.take(more)
	}
	const wide = 16 << 10 // lines of a window, at least, that cost less to search than to begin
	window := out.end
	if o.most > 0 {
		window = uint64(max(4*o.most, 1<<10))
	}
	for low, high := from, out.end; low < high; {
		first, end, before := low, high, out.scanned
		minimum, maximum := req.query.TimeRange()
		if high-low > window && o.newest { // whole spans, so that nothing is read twice
			begin, _ := a.src.span(high-window, minimum, maximum)
			first = max(low, begin)
		} else if high-low > window {
			_, next := a.src.span(low+window-1, minimum, maximum)
			end = min(high, next)
		}
		if o.newest {
			high = first
		} else {
			low = end
		}
		if err := a.find(ctx, o.narrow(req.query), first, end, &out.found, keep, func() error { return out.tick(patience) }); err != nil {
			return nil, err
		}
		// That lines are left out for their times does not tell how far the next ones that match are.
		if window < wide || out.scanned > before || o.full() || out.only {
			window *= 2
		}
	}
	out.turn.Begin()
	defer out.turn.End()
	if err := pipe.Sorted(a.check(ctx, out), o.lines, compareTimes); err != nil {
		return nil, err
	}
	pieces := make([][]byte, len(o.lines))
	for i := range o.lines {
		pieces[i] = o.lines[i].text
	}
	return slices.Clip(pieces), nil
}
