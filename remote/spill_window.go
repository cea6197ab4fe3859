package remote

import (
	"cmp"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rollway/rollway/internal/backoff"
	"github.com/rollway/rollway/internal/spool"
	"github.com/rollway/rollway/line"
)

const (
	// maxWindow is how many requests are under way at a time at most.
	maxWindow = spool.MaxInFlight

	// After probeAfter equal errors of a piece the next one is sent at once, to see
	// whether the peer accepts that. After divideAfter, twice as many for an error that
	// may pass, and four times where the peer says so, the piece is divided, if the
	// peer has accepted others meanwhile.
	probeAfter  = 2
	divideAfter = 5
)

// A worker sends one piece of the queue at a time.
type worker struct {
	out sender
	sem chan struct{} // held while out is used

	piece *spool.Batch // nil while the worker is free
	busy  bool         // an attempt is under way
	sent  atomic.Bool  // all that it has to send is on the way
	began time.Time    // the latest attempt
	size  int          // bytes it had to send
	key   string       // of the request, if one holds the piece; only for peers of HTTP
	after string       // key of the piece before, empty if that is not under way
	err   error        // how it ended

	failures int       // in a row
	failed   time.Time // when the latest was
	due      time.Time // when the next attempt may begin
	asked    bool      // the peer asked for that time
	answered bool      // the latest attempt had an answer
	code     int       // status of the latest answer, 0 if there was none
	repeats  int       // how often in a row it was that
	passed   uint64    // window.passed when the piece failed first, or lines of it were settled last
	accepted bool      // the peer accepted a part of the piece in the latest attempt
	latest   uint64    // window.passed when the latest attempt failed
	probed   bool      // another piece was tried since
}

// A window chooses which pieces of the queue are on their way to the peer.
type window struct {
	w     *Writer
	max   int // of size
	piece int // bytes

	workers []*worker     // the first shares the Writer's sender
	queue   []*worker     // those with a piece, oldest first
	last    *worker       // began latest
	ended   chan *worker  // attempts that have ended
	sent    chan struct{} // holds one value when all bytes of a worker are on the way

	size   int           // how many workers may be busy
	busy   int           // how many are
	best   time.Duration // how long a full piece takes when the peer is not busy
	passed uint64        // pieces, or parts of one, that the peer has accepted
}

func newWindow(w *Writer) window {
	q := window{w: w, size: 1, max: 1, piece: streamPiece, ended: make(chan *worker, maxWindow), sent: make(chan struct{}, 1)}
	if w.addr.transport == overHTTP {
		q.max, q.piece = cmp.Or(w.opt.Spill.Window, maxWindow), w.opt.MaxBatch/w.addr.dialect.growth // one request
	}
	q.workers = []*worker{{out: w.out, sem: w.sem}}
	return q
}

// choose returns the worker whose piece is sent next, or nil and how long to wait; 0 means
// until an event. Pieces go in order, except as mayOvertake allows.
func (q *window) choose(s *spool.Spool, now time.Time) (next *worker, wait time.Duration, err error) {
	if q.busy > 0 && q.last.busy && !q.last.sent.Load() {
		return nil, 0, nil // else it would be overtaken on the way
	}
	for i := 0; i < len(q.queue); i++ {
		l := q.queue[i]
		switch {
		case l.busy:
		case s.Expire(l.piece):
			q.free(l)
			i--
		case !now.Before(l.due):
			return l, 0, nil
		default:
			if d := l.due.Sub(now); wait == 0 || d < wait {
				wait = d
			}
			if !q.mayOvertake(l) {
				return nil, wait, nil
			}
		}
	}
	if q.busy == 0 || s.Stats().Unread >= int64(q.piece) {
		if b, err := s.Next(q.piece); b != nil {
			next = q.freeWorker()
			next.piece = b
			q.queue = append(q.queue, next)
			return next, 0, nil
		} else if err != nil {
			return nil, 0, err
		}
	}
	for _, l := range q.queue {
		l.probed = true // there is no other; one that comes later says nothing of now
	}
	return nil, wait, nil
}

// mayOvertake reports whether a later piece may be sent before that of l, which has
// failed: to see whether the peer accepts it, and as long as it does.
func (q *window) mayOvertake(l *worker) bool {
	after := probeAfter
	if l.asked || temporary(l.code) {
		after = divideAfter
	}
	return l.answered && l.repeats >= after && (!l.probed || q.passed > l.latest)
}

// freeWorker returns a worker without a piece.
func (q *window) freeWorker() *worker {
	for _, l := range q.workers {
		if l.piece == nil {
			return l
		}
	}
	l := &worker{out: newSender(q.w), sem: make(chan struct{}, 1)}
	q.workers = append(q.workers, l)
	return l
}

// free takes the piece of l out of the queue.
func (q *window) free(l *worker) {
	q.queue = slices.DeleteFunc(q.queue, func(o *worker) bool { return o == l })
	at := slices.Index(q.workers, l)
	q.workers[at] = &worker{out: l.out, sem: l.sem}
}

// begin notes that l begins an attempt.
func (q *window) begin(l *worker, now time.Time) {
	l.busy, l.began, l.size, l.accepted = true, now, len(l.piece.Data), false
	l.sent.Store(false)
	if l.after = ""; q.w.addr.dialect == plainLines {
		l.key = l.piece.Key(line.Count(l.piece.Data))
		if i := slices.Index(q.queue, l); i > 0 && q.queue[i-1].busy {
			l.after = q.queue[i-1].key
		}
	}
	q.busy++
	q.last = l
	for _, o := range q.queue {
		o.probed = o.probed || o != l && !o.busy
	}
}

// end notes that the attempt of l has ended. more says that full pieces wait.
func (q *window) end(l *worker, now time.Time, more bool) {
	l.busy = false
	q.busy--
	if l.err == nil {
		q.passed++
		if more && l.size >= q.piece/2 { // a small one says nothing of full ones
			q.adapt(now.Sub(l.began))
		}
		q.free(l)
		return
	}
	q.size = 1
	if l.failed.IsZero() {
		l.passed = q.passed
	}
	if len(l.piece.Data) < l.size { // without a new success no further line is dropped
		l.failures, l.repeats, l.passed = 0, 0, q.passed
		if l.accepted {
			q.passed++
		}
	}
	e, answered := errors.AsType[*statusError](l.err)
	if l.answered = answered; answered {
		if e.code != l.code {
			l.code, l.repeats = e.code, 0
		}
		l.repeats++
	}
	asked := backoff.Asked(l.err)
	l.failed, l.asked, l.latest, l.probed = now, asked > 0, q.passed, false
	l.due = now.Add(retryWait(l.failures, asked))
	l.failures++
}

// adapt changes the size of the window: it grows while a piece takes no longer.
func (q *window) adapt(took time.Duration) {
	if q.best == 0 || took < q.best {
		q.best = took
	} else {
		q.best += q.best / 64 // the peer may have become slower for good
	}
	if took > 2*q.best {
		q.size = max(1, q.size-1)
	} else {
		q.size = min(q.max, 2*q.size)
	}
}

// retrySoon lets the next attempts begin soon, unless the peer asked for time.
func (q *window) retrySoon() {
	for _, l := range q.queue {
		if soon := l.failed.Add(minRetryWait); !l.busy && !l.asked && soon.Before(l.due) {
			l.due = soon
		}
	}
}

// shrink gives up what only a backlog needs, and reports whether there was any.
func (q *window) shrink() bool {
	if len(q.workers) == 1 && q.size == 1 {
		return false
	}
	for _, l := range q.workers[1:] {
		l.out.close()
	}
	q.workers, q.size, q.last = q.workers[:1:1], 1, nil
	return true
}

// repeatedStatusOf returns the status that l got again and again, if single lines may be
// its cause.
func (q *window) repeatedStatusOf(l *worker) repeatedStatus {
	after := divideAfter
	switch {
	case l.asked, busy(l.code):
		after *= 4
	case temporary(l.code):
		after *= 2
	}
	if l.repeats < after || q.passed == l.passed {
		return 0
	}
	return repeatedStatus(l.code)
}
