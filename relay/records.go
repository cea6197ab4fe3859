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

// records hands records to a handler in a goroutine of its own, so that a handler
// that is slow, hangs or panics holds up nobody. New puts one in the place of the
// handlers of Options.Log and Access.
type records struct {
	to    slog.Handler
	queue aside.Queue

	mu       sync.Mutex
	waiting  uint64 // guarded by mu: in the queue, or with the handler
	handed   uint64 // guarded by mu: the handler has returned from them
	unlogged uint64 // guarded by mu
	left     bool   // guarded by mu: nothing is handed on any more
}

func newRecords(to slog.Handler) *records {
	return &records{to: to, queue: aside.Queue{Most: mostRecords}}
}

// Enabled leaves it to log to ask the handler, which may hang.
func (q *records) Enabled(context.Context, slog.Level) bool { return true }

func (q *records) Handle(_ context.Context, rec slog.Record) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.left || !q.queue.Do(func() { q.log(rec) }) {
		q.unlogged++
	} else {
		q.waiting++
	}
	return nil
}

// WithAttrs and WithGroup are not called: the relay derives no loggers.
func (q *records) WithAttrs(attrs []slog.Attr) slog.Handler {
	return newRecords(q.to.WithAttrs(attrs))
}

func (q *records) WithGroup(name string) slog.Handler { return newRecords(q.to.WithGroup(name)) }

// log hands rec on.
func (q *records) log(rec slog.Record) {
	if q.hasLeft() {
		return
	}
	logged := false
	defer func() { q.returned(logged) }()
	logged = !q.to.Enabled(noContext, rec.Level) || q.to.Handle(noContext, rec) == nil
}

func (q *records) hasLeft() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.left
}

func (q *records) returned(logged bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.handed++
	if q.left {
		return // it was counted
	}
	q.waiting--
	if !logged {
		q.unlogged++
	}
}

// finish waits until all records are handed on. If the handler returns from none
// for stall, the rest is dropped.
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
	q.unlogged += q.waiting
	q.waiting, q.left = 0, true
}

func (q *records) count() (handed, unlogged uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.handed, q.unlogged
}
