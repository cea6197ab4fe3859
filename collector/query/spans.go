package query

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollway/rollway/collector/admission"
	"github.com/rollway/rollway/collector/filters"
	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/collector/query/pipe"
)

// A rangeScan searches a range of offsets by several workers. Its consumer, the goroutine of the
// request, takes what they find in order.
//
//	range     from ──────────────────────────────────────────────────────► end
//	spans     │ 0: front │ 1 │ 2 │ 3 │ not cut yet, see journal.Span
//	worker    │    A     │ B │ A │ B │ each has a reader and takes the next span when it is done
//	parts     │ ▤        │ ▤▤│ ▤ │   │ what was found; only the front's are taken
//
// For the newest lines the spans are cut from the end backwards, and the newest is the front.
//
//  1. A span has one worker, which puts its parts in order. Spans are begun in order.
//  2. The consumer takes parts of the front span alone. When it has taken all, the next span is
//     the front. So lines, figures, gaps and errors come as from one search without workers,
//     and what lies after an early end is never counted.
//  3. A part that waits is charged to API.memory, except up to frontBytes of the front's. The rest
//     is at most aheadBytes. A worker that has no room waits, without its turn, until there is
//     some or its span is the front. What is not put yet is not charged, up to most: a part for
//     each worker.
//  4. The front needs no memory of others and no other worker. So something moves on as long as
//     the consumer takes parts.
//  5. Each wait ends with stop, which the consumer calls when it wants no more and the context
//     when it ends. The consumer returns once no worker is left.
//  6. pause gives up all that was not taken, and the workers: the consumer begins anew where it
//     is. Its client takes nothing for a while, and may have gone.
//  7. A worker looks at lines in turns of the query's principal, and so does the consumer.
//  8. With sums, where the order of lines does not matter, a worker has a part of its own for the lines
//     of all its spans. It gives that away when there is no span left, or no memory for more: what it
//     takes beyond most is charged. The parts of its spans have figures alone, and need no room. pause does
//     nothing.
type rangeScan struct {
	api   *API
	query *Query
	asked bool
	p     *admission.Principal
	few   bool                              // one worker begins, and others after the first span
	later bool                              // its turns come after those of scans for some lines
	each  uint64                            // lines that are wanted, backwards, if each line is one: see coveredLocked; 0: it is not known
	back  bool                              // spans are cut from the end backwards
	test  *filters.Test                     // that frames with lines which match pass
	wide  int                               // how many spans are cut as one at most, forwards, where there are many
	fresh func(*part)                       // makes p ready for lines
	keep  func(*part, uint64, []byte) error // adds the line at an offset; p.scanned is up to date
	most  int                               // bytes of a part, after which it is put, or given
	sums  bool                              // workers have parts of their own
	rows  func(*part, *batch) error         // adds rows of tables; nil: lines are wanted
	steps []time.Duration                   // see tables
	early time.Duration                     // its age, after which it is put if the consumer waits for it

	ready chan struct{} // tells the consumer that there is something to take
	group sync.WaitGroup
	left  offsets // what the consumer has not taken

	mu      sync.Mutex
	uncut   offsets
	sieves  []*sieve  // of segments, from the next span on
	cut     int       // spans
	covered uint64    // offsets in them
	room    sync.Cond // a worker waits for memory, to be the front or for a sieve; of mu
	spans   []*span   // that were begun, the front first
	given   []*part   // workers' own
	free    []*part   // to be used again
	held    holding   // by parts
	share   int64     // that workers' own parts may take
	workers int
	cutAll  bool // there is no span left to cut
	stopped bool
	paused  bool
	failure any // a worker has panicked
}

// offsets are those from one to before another.
type offsets struct{ from, to uint64 }

const (
	frontBytes = 2 * streamBuffer // of the front's parts, after which its worker waits
	aheadBytes = 4 << 20          // of the parts of all other spans
)

// span is guarded by rangeScan.mu, except its offsets, which stay.
type span struct {
	offsets
	skip  int          // frames, which cannot match: the span is not read; 0: it is
	parts []*part      // that wait, in order
	bytes int          // of them
	done  bool         // there are no more
	err   error        // that ended the search
	spent atomic.Int64 // by its worker for a part that is not put, in nanoseconds
}

// part is what a worker has made of lines that it has found, and figures of what was searched
// for them. Which of the fields is used depends on the scan.
type part struct {
	found
	span    offsets
	bytes   int  // that it takes
	charged int  // of them
	given   bool // it was a worker's own

	lines  []byte    // all
	hits   []hit     // of lines
	newest newest    // lines
	run    *pipe.Run // that has taken the lines
}

// hit is a line in a part.
type hit struct {
	offset  uint64
	end     int    // in lines
	scanned uint64 // of the part, up to this line
}

// newScan returns a scan of [from, end) in ascending order, or with back from its end on.
func (a *API) newScan(q *Query, from, end uint64, back bool, f *found) *rangeScan {
	s := &rangeScan{api: a, query: q, asked: f.asked, few: f.few, later: f.later, back: back, p: cmp.Or(f.p, a.nobody), ready: make(chan struct{}, 1)}
	s.room.L = &s.mu
	s.held = holding{memory: a.memory, p: s.p}
	if q.root != nil {
		s.test = q.root.filter()
	}
	s.left = offsets{from, end}
	s.uncut = s.left
	return s
}

// run has the workers search, and gives take each part in order until it returns false.
// Meanwhile it calls tick at least every flushEvery. take adds the figures to f.
func (s *rangeScan) run(ctx context.Context, f *found, take func(*part) (more bool, err error), tick func() error) error {
	stop := context.AfterFunc(ctx, s.stop)
	f.scan = s
	defer func() {
		stop()
		s.stop()
		s.group.Wait()
		s.held.release()
		f.scan = nil
	}()
	s.start()
	timer := time.NewTimer(flushEvery)
	defer timer.Stop()
	for {
		if err := cmp.Or(context.Cause(s.api.ctx), context.Cause(ctx)); err != nil {
			return err
		}
		f.wait(s.resume)
		p, end, err := s.next()
		switch {
		case p != nil:
			if f.at != nil {
				f.wait(f.at.Begin)
			}
			from, reached, given := p.span.from, p.reached, p.given
			more, err := take(p) // which may give p to a worker
			if s.back {
				s.left.to = from
			} else if !given {
				s.left.from = reached
			}
			if err == nil && more {
				err = tick()
			}
			if f.at != nil {
				f.at.End()
			}
			if err != nil || !more {
				return err
			}
		case end:
			return err
		default:
			timer.Reset(flushEvery)
			f.wait(func() {
				select {
				case <-s.ready:
				case <-timer.C:
				case <-ctx.Done():
				}
			})
			if err := tick(); err != nil {
				return err
			}
		}
	}
}

// add adds the figures of what was searched after f.
func (a *API) add(f, p *found) {
	a.stats.scanned.Add(p.scanned)
	a.stats.matched.Add(p.matched)
	f.scanned += p.scanned
	f.matched += p.matched
	f.missing += p.missing
	f.gap = cmp.Or(f.gap, p.gap)
	f.damaged = f.damaged || p.damaged
	f.after = max(f.after, p.after)
	f.own = max(f.own, p.own)
	f.reached = p.reached
	f.used += p.used
}

// next returns the next part, or nil; end: there are no more, with the error that ended the
// search.
func (s *rangeScan) next() (p *part, end bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure != nil {
		panic(s.failure)
	}
	if len(s.given) > 0 {
		p, s.given = s.given[0], s.given[1:]
		s.takenLocked(p)
		return p, false, nil
	}
	for len(s.spans) > 0 {
		front := s.spans[0]
		if len(front.parts) > 0 {
			p = front.parts[0]
			front.parts = front.parts[1:]
			front.bytes -= p.bytes
			s.takenLocked(p)
			return p, false, nil
		}
		if !front.done || front.err != nil {
			return nil, front.err != nil, front.err
		}
		s.spans = s.spans[1:]
		if len(s.spans) == 0 && s.covered >= s.each { // they did not have all lines that are wanted
			s.each = 0
		}
		s.room.Broadcast()
	}
	return nil, s.cutAll && (!s.sums || s.workers == 0), nil
}

// takenLocked gives back what a part was charged, which the consumer has now.
func (s *rangeScan) takenLocked(p *part) {
	_ = s.held.take(-p.charged)
	p.charged = 0
	s.room.Broadcast()
}

// stop ends all workers and waits.
func (s *rangeScan) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	s.room.Broadcast()
}

// tell wakes the consumer.
func (s *rangeScan) tell() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// pause ends all workers and gives back what waits, until resume. Any goroutine may call it.
func (s *rangeScan) pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sums {
		return
	}
	s.stopped, s.paused = true, true
	for _, sp := range s.spans {
		sp.parts = nil
	}
	_ = s.held.take(-int(s.held.n))
	s.room.Broadcast()
}

// resume begins anew with what the consumer has not taken, after a pause.
func (s *rangeScan) resume() {
	s.mu.Lock()
	paused := s.paused
	s.mu.Unlock()
	if !paused {
		return
	}
	s.group.Wait()
	s.mu.Lock()
	s.spans, s.free, s.uncut = nil, nil, s.left
	s.stopped, s.paused, s.cutAll = false, false, false
	s.mu.Unlock()
	s.start()
}

// start starts the first workers.
func (s *rangeScan) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.startLocked()
	if !s.few {
		s.startAllLocked()
	}
}

// startLocked starts a worker, if another one may find work.
func (s *rangeScan) startLocked() {
	if s.workers < s.api.o.Admission.CPU.Turns() && !s.stopped && !s.cutAll {
		s.workers++
		s.group.Add(1)
		go s.work()
	}
}

func (s *rangeScan) startAllLocked() {
	for range s.api.o.Admission.CPU.Turns() {
		s.startLocked()
	}
}

// begin returns the next span of a worker, or nil. What it takes to find that is done in turns of turn.
func (s *rangeScan) begin(first bool, turn journal.Turn) *span {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.stopped && !s.cutAll {
		unread, ready := (*sieve)(nil), false
		if !s.coveredLocked() {
			unread, ready = s.unreadLocked()
		}
		if unread != nil {
			s.readLocked(unread, turn)
			continue
		} else if !ready {
			s.room.Wait()
			continue
		}
		sp := s.cutLocked()
		if sp == nil {
			s.cutAll = true
			s.room.Broadcast()
			s.tell()
			return nil
		}
		s.spans = append(s.spans, sp)
		if !first && !s.coveredLocked() {
			s.startAllLocked()
		}
		return sp
	}
	return nil
}

// coveredLocked reports whether the spans that were begun and not taken should have all lines that are
// wanted: others are not begun until it turns out that they do not.
func (s *rangeScan) coveredLocked() bool {
	return s.each > 0 && s.covered >= s.each && len(s.spans) > 0
}

// newPart returns an empty part.
func (s *rangeScan) newPart() *part {
	s.mu.Lock()
	p := new(part)
	if n := len(s.free); n > 0 {
		p, s.free = s.free[n-1], s.free[:n-1]
	}
	s.mu.Unlock()
	s.fresh(p)
	return p
}

// setShare has workers' own parts take n bytes at most, or aheadBytes if that is more.
func (s *rangeScan) setShare(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.share = max(n, aheadBytes)
}

// recycle has p used again.
func (s *rangeScan) recycle(p *part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, p)
}
