package relay

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/rollway/rollway/internal/aside"
)

// maxRecords may wait for a handler: as many connections can end at once under a limit
// of 32,768 descriptors.
const maxRecords = 16 << 10

// logQueue calls a slog.Handler in a goroutine of its own, so that a handler that is
// slow, hangs or panics delays nothing else.
type logQueue struct {
	slog.Handler // its WithAttrs and WithGroup are not called: the relay derives no loggers
	queue        aside.Queue

	mu        sync.Mutex
	waiting   uint64 // guarded by mu: in the queue, or with the handler
	handed    uint64 // guarded by mu: the handler has returned from them
	unlogged  uint64 // guarded by mu
	abandoned bool   // guarded by mu: no record is handed on any more
}

func newLogQueue(to slog.Handler) *logQueue {
	return &logQueue{Handler: to, queue: aside.Queue{Most: maxRecords}}
}

// Enabled does not ask the handler, which may hang; log does.
func (q *logQueue) Enabled(context.Context, slog.Level) bool { return true }

func (q *logQueue) Handle(_ context.Context, rec slog.Record) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.abandoned || !q.queue.Do(func() { q.log(rec) }) {
		q.unlogged++
	} else {
		q.waiting++
	}
	return nil
}

// log hands rec on.
func (q *logQueue) log(rec slog.Record) {
	q.mu.Lock()
	abandoned := q.abandoned
	q.mu.Unlock()
	if abandoned {
		return
	}
	logged := false
	defer func() { q.returned(logged) }()
	logged = !q.Handler.Enabled(background, rec.Level) || q.Handler.Handle(background, rec) == nil
}

func (q *logQueue) returned(logged bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.handed++
	if q.abandoned {
		return // it was counted
	}
	q.waiting--
	if !logged {
		q.unlogged++
	}
}

// drain waits until all records are handed on. It drops the rest if the handler
// returns from none of them for stall.
func (q *logQueue) drain(stall time.Duration) {
	before, _ := q.count()
	for {
		select {
		case <-q.queue.Idle():
			return
		case <-time.After(stall):
		}
		handed, _ := q.count()
		if handed == before {
			q.abandon()
			return
		}
		before = handed
	}
}

// abandon counts all records that are not logged yet, and those that follow, as unlogged.
func (q *logQueue) abandon() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.unlogged += q.waiting
	q.waiting, q.abandoned = 0, true
}

func (q *logQueue) count() (handed, unlogged uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.handed, q.unlogged
}
