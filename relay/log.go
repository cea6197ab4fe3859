package relay

import (
	"context"
	"crypto/tls"
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
	defer func() {
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
	}()
	logged = !q.Handler.Enabled(background, rec.Level) || q.Handler.Handle(background, rec) == nil
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

// limitedLog logs each message at most once a second, with the number of those it has
// suppressed. It is safe for concurrent use.
type limitedLog struct {
	to *slog.Logger

	mu    sync.Mutex
	notes map[string]*limitedNote // guarded by mu; by message
}

type limitedNote struct {
	last time.Time
	held int
}

const logEvery = time.Second

func (l *limitedLog) log(level slog.Level, msg string, args ...any) {
	l.mu.Lock()
	n := l.notes[msg]
	if n == nil {
		n = new(limitedNote)
		l.notes[msg] = n
	}
	now := time.Now()
	if now.Sub(n.last) < logEvery {
		n.held++
		l.mu.Unlock()
		return
	}
	held := n.held
	*n = limitedNote{last: now}
	l.mu.Unlock()
	if held > 0 {
		args = append(args, slog.Int("held_back", held))
	}
	l.to.Log(background, level, msg, args...)
}

// name is the peer's address in records: that of a trusted proxy's client, if there is one.
func (s *peer) name() string {
	if s.origin != nil && s.origin.from.IsValid() {
		return s.origin.from.String()
	}
	return s.socket.RemoteAddr().String()
}

// logAccess writes the record of a connection that has ended.
func (r *Relay) logAccess(c *conn) {
	if r.options.Access == nil {
		return
	}
	copied := "buffers"
	if c.up.spliced || c.down.spliced {
		copied = "splice"
	}
	attrs := []slog.Attr{
		slog.String("client", c.client.name()),
		slog.String("upstream", c.upstream.name()),
		slog.String("reason", Reason(c.reason.Load()).String()),
		slog.Uint64("bytes_up", c.up.bytes.Load()),
		slog.Uint64("bytes_down", c.down.bytes.Load()),
		slog.Duration("duration", time.Since(c.start)),
		slog.String("copy", copied),
	}
	if c.firstByte > 0 {
		attrs = append(attrs, slog.Duration("first_byte", c.firstByte))
	}
	if t, ok := c.client.conn.(*tls.Conn); ok {
		state := t.ConnectionState()
		attrs = append(attrs, slog.String("tls", tls.VersionName(state.Version)))
		if state.ServerName != "" {
			attrs = append(attrs, slog.String("server_name", state.ServerName))
		}
		if len(state.PeerCertificates) > 0 {
			attrs = append(attrs, slog.String("client_cert", state.PeerCertificates[0].Subject.String()))
		}
	}
	r.options.Access.LogAttrs(background, slog.LevelInfo, "connection", attrs...)
}
