package remote

import (
	"errors"
	"time"
)

// Stats is a snapshot of a Writer's counters; lines unless said otherwise. At
// every moment, not only at rest, Accepted = Written + Dropped.Total() +
// Pending.
//
// A line is accepted when a Write takes it up and Pending while that Write
// runs. A Write that fails hands the lines beyond its n back to the caller,
// who still owns them: they leave Pending, and with it Accepted, and are
// counted in Returned. Sent again, they are accepted again. So Accepted may
// fall; all other counters only rise.
//
// With Options.Spill, lines on disk are Pending until they are sent, also after
// Close. Those that were there when the Writer was opened are Accepted too, and
// counted in Recovered: Accepted - Recovered is what came by Write.
type Stats struct {
	Accepted uint64 // Written + Dropped.Total() + Pending
	Written  uint64 // over HTTP: acknowledged with 2xx; otherwise: passed whole to the system
	Dropped  Drops
	Pending  uint64 // in a Write that has not returned, or on disk

	Recovered uint64 // found in Options.Spill.Dir by Open; a part of Accepted
	Spill     SpillStats

	Truncated uint64 // those of Written that were cut, with Syslog.Truncate

	Returned uint64 // handed back by a Write that failed
	Rejected uint64 // offered after Close, never accepted

	Requests  uint64 // HTTP requests begun; pieces or datagrams passed to the system
	Retries   uint64 // attempts beyond a Write's first: stale connection, split after 413, Options.Retries
	Errors    uint64 // failed attempts and lost connections
	Connects  uint64 // connections established, TLS handshake not counted
	BytesSent uint64 // bytes passed to the connections, with headers and TLS, after compression

	Connected     bool      // a connection is open as far as this side knows; over udp: a socket is
	Peer          string    // address of the latest connection's other end, "" if there was none
	LastError     string    // text of the latest error, "" if there was none
	LastErrorTime time.Time // when it happened
	LastSuccess   time.Time // when lines were settled last
	Failures      uint64    // errors since then

	// LastRefusal is why lines were counted in Dropped.Rejected or TooLarge
	// last, or a request refused as a whole whose lines are kept; up to a KiB
	// and some, "" if there was none.
	LastRefusal     string
	LastRefusalTime time.Time // when it happened
}

// Drops counts lines that are lost, by reason.
type Drops struct {
	Rejected uint64 // refused by the peer for what they hold
	TooLarge uint64 // a single line, answered with 413, or longer than a datagram or message may be

	SpillFull    uint64 // gave way to newer ones on disk, under SpillDropOldest
	SpillAge     uint64 // older than Spill.MaxAge
	SpillDamaged uint64 // on disk, and not readable any more
}

// Total is the number of lost lines.
func (d Drops) Total() uint64 {
	return d.Rejected + d.TooLarge + d.SpillFull + d.SpillAge + d.SpillDamaged
}

// ledger is the part of Stats that moves with lines; guarded by Writer.mu.
type ledger struct {
	written  uint64
	cut      uint64
	dropped  Drops
	pending  uint64
	returned uint64
	rejected uint64
	spill    spilled

	requests      uint64
	retries       uint64
	errors        uint64
	lastError     string
	lastErrorTime time.Time
	lastSuccess   time.Time
	failures      uint64

	lastRefusal     string
	lastRefusalTime time.Time
}

// Stats returns the counters. It never waits for the peer or the disk.
func (w *Writer) Stats() Stats {
	w.mu.Lock()
	l := w.ledger
	w.mu.Unlock()
	var spill SpillStats
	if w.spill != nil {
		spill = w.spill.stats(l.spill)
	}
	return Stats{
		Accepted:      l.written + l.dropped.Total() + l.pending,
		Written:       l.written,
		Dropped:       l.dropped,
		Pending:       l.pending,
		Truncated:     l.cut,
		Returned:      l.returned,
		Rejected:      l.rejected,
		Recovered:     l.spill.recovered,
		Spill:         spill,
		Requests:      l.requests,
		Retries:       l.retries,
		Errors:        l.errors,
		Connects:      w.meter.connects.Load(),
		BytesSent:     w.meter.bytes.Load(),
		LastError:     l.lastError,
		LastErrorTime: l.lastErrorTime,
		LastSuccess:   l.lastSuccess,
		Failures:      l.failures,
		Connected:     w.meter.open.Load() > 0,
		Peer:          w.meter.peer(),

		LastRefusal:     l.lastRefusal,
		LastRefusalTime: l.lastRefusalTime,
	}
}

func (w *Writer) countRequest() { w.count(func(l *ledger) { l.requests++ }) }
func (w *Writer) countRetry()   { w.count(func(l *ledger) { l.retries++ }) }

func (w *Writer) countError(err error) {
	text, now := w.redact(err.Error()), time.Now()
	w.count(func(l *ledger) { l.errors++; l.failures++; l.lastError, l.lastErrorTime = text, now })
	if e, ok := errors.AsType[*statusError](err); ok && e.refuses() {
		w.noteRefusal(e)
	}
}

// countSuccess counts lines settled, whatever became of them.
func (w *Writer) countSuccess() {
	now := time.Now()
	w.count(func(l *ledger) { l.failures, l.lastSuccess = 0, now })
}

func (w *Writer) count(f func(*ledger)) {
	w.mu.Lock()
	f(&w.ledger)
	w.mu.Unlock()
}
