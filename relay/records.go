package relay

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/rollway/rollway/internal/aside"
)

// mostRecords wait for a handler: as many as connections may end at once under a
// limit of 32,768 descriptors.
const mostRecords = 16 << 10

// records are handed to a handler by a goroutine that lives while there are some,
// so that one that is slow, hangs or panics holds up nobody. They are the handler
// of Options.Log and Access once New has seen those.
type records struct {
	to    slog.Handler
	queue aside.Queue // of one; it has one in it whenever some wait and none is inside

	mu       sync.Mutex
	waiting  []slog.Record // guarded by mu
	inside   bool          // guarded by mu: the handler has one
	left     bool          // guarded by mu: nothing is handed on any more
	handed   uint64        // guarded by mu: the handler has returned from them
	unlogged uint64        // guarded by mu
}

// Enabled leaves it to one to ask the handler, which may hang.
func (q *records) Enabled(context.Context, slog.Level) bool { return true }

func (q *records) Handle(_ context.Context, rec slog.Record) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.left || len(q.waiting) == mostRecords {
		q.unlogged++
		return nil
	}
	q.waiting = append(q.waiting, rec)
	if len(q.waiting) == 1 && !q.inside {
		q.queue.Do(q.one)
	}
	return nil
}

// WithAttrs and WithGroup are not called: the relay derives no loggers.
func (q *records) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &records{to: q.to.WithAttrs(attrs)}
}

func (q *records) WithGroup(name string) slog.Handler { return &records{to: q.to.WithGroup(name)} }

// one hands on the record whose turn it is, and sees to the next.
func (q *records) one() {
	rec, ok := q.take()
	if !ok {
		return
	}
	logged := false
	defer func() { q.returned(logged) }()
	logged = !q.to.Enabled(noContext, rec.Level) || q.to.Handle(noContext, rec) == nil
}

func (q *records) take() (rec slog.Record, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return rec, false
	}
	rec, q.waiting, q.inside = q.waiting[0], q.waiting[1:], true
	if len(q.waiting) == 0 {
		q.waiting = nil
	}
	return rec, true
}

func (q *records) returned(logged bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.inside && !logged {
		q.unlogged++
	}
	q.inside = false
	q.handed++
	if len(q.waiting) > 0 {
		q.queue.Do(q.one)
	}
}

// finish waits until all are handed on. From a handler that returns from none for
// stall they are taken away.
func (q *records) finish(stall time.Duration) {
	before, _ := q.count()
	for {
		select {
		case <-q.queue.Idle():
			return
		case <-time.After(stall):
		}
		handed, _ := q.count()
		if handed == before {
			q.leave()
			return
		}
		before = handed
	}
}

// leave counts what is not logged yet as unlogged, and so all that follows.
func (q *records) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.unlogged += uint64(len(q.waiting))
	if q.inside {
		q.unlogged++
	}
	q.waiting, q.inside, q.left = nil, false, true
}

func (q *records) count() (handed, unlogged uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.handed, q.unlogged
}
