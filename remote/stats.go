package remote

import (
	"errors"
	"io"
	"time"

	"github.com/rollway/rollway/internal/promtext"
	"github.com/rollway/rollway/line"
)

// Stats is a snapshot of a Writer's counters; lines unless said otherwise. The Ledger is
// balanced at every moment.
//
// A line is accepted when a Write takes it up, and Pending while that Write runs. A Write
// that fails hands the lines beyond its n back to the caller: they leave Pending and
// Accepted, and count in Returned. Sent again, they are accepted again.
//
// With Options.Spill, lines on disk are Pending until they are sent, also after Close.
// Those that Open found there are Accepted too, and count in Recovered.
//
// Lines are Dropped as Refused by the peer for what they hold; TooLarge, if a single one
// is answered with 413 or is longer than a datagram or message may be; and from disk as
// Expired and Damaged.
type Stats struct {
	line.Ledger // over HTTP Written is acknowledged with 2xx; otherwise passed whole to the system

	Recovered uint64 // found in Options.Spill.Dir by Open; a part of Accepted
	Returned  uint64 // handed back by a Write that failed
	Truncated uint64 // those of Written that were cut, with Syslog.Truncate
	Spill     SpillStats

	Requests  uint64 // HTTP requests begun; pieces or datagrams passed to the system
	Retries   uint64 // attempts beyond a Write's first: stale connection, split after 413, Options.Retries
	Errors    uint64 // failed attempts and lost connections
	Connects  uint64 // connections established, TLS handshake not counted
	BytesSent uint64 // bytes passed to the connections, with headers and TLS, after compression

	Connected   bool      // a connection is open as far as this side knows; over udp: a socket is
	Peer        string    // address of the latest connection's other end, "" if there was none
	LastSuccess time.Time // when lines were settled last
	Failures    uint64    // errors since then

	// LastRefusal is why lines were counted in Dropped.Refused or TooLarge last, or a
	// whole request was refused; about a KiB at most.
	LastRefusal     string
	LastRefusalTime time.Time // when it happened

	Failing       bool      // the latest attempt has failed: Failures is not 0
	LastError     error     // the latest error, without secrets; nil if there was none
	LastErrorTime time.Time // when it happened
}

// Stats returns the counters. It never waits for the peer or the disk.
func (w *Writer) Stats() Stats {
	w.mu.Lock()
	s := w.stats
	w.mu.Unlock()
	s.Accepted = s.Written + s.Dropped.Total() + s.Pending
	s.Connects, s.BytesSent = w.dialer.connects.Load(), w.dialer.bytes.Load()
	s.Connected = w.dialer.open.Load() > 0
	s.Peer, _ = w.dialer.latest.Load().(string)
	s.Failing = s.Failures > 0
	if w.spill != nil {
		w.spill.addDiskStats(&s.Spill)
	}
	return s
}

// WriteMetrics writes the Stats in the text format of Prometheus. labels are names and
// values by turns, such as "log", "audit", for all samples. Counters begin at 0 with the
// Writer, times are in seconds. The error names a label that is not allowed, or is out's.
func (s Stats) WriteMetrics(out io.Writer, labels ...string) error {
	return promtext.Write(out, "remote", labels, promtext.Ledger(s.Ledger), promtext.Table{
		promtext.Counter("lines_recovered_total", "Lines that an earlier process left on disk.", s.Recovered),
		promtext.Counter("lines_returned_total", "Lines that a failed Write handed back.", s.Returned),
		promtext.Counter("lines_truncated_total", "Written lines that were cut.", s.Truncated),
		promtext.Counter("requests_total", "Requests, pieces of a stream or datagrams sent.", s.Requests),
		promtext.Counter("retries_total", "Attempts beyond a Write's first.", s.Retries),
		promtext.Counter("errors_total", "Attempts that failed and connections that were lost.", s.Errors),
		promtext.Counter("connects_total", "Connections established.", s.Connects),
		promtext.Counter("sent_bytes_total", "Bytes sent, with headers and TLS.", s.BytesSent),
		promtext.Flag("connected", "1 while a connection is open.", s.Connected),
		promtext.Gauge("spill_lines", "Lines on disk.", s.Spill.Lines),
		promtext.Gauge("spill_bytes", "Bytes of the files on disk.", s.Spill.Bytes),
		promtext.Seconds("spill_oldest_seconds", "Age of the oldest line on disk.", s.Spill.OldestAge),
		promtext.Gauge("spill_requests_in_flight", "Requests with lines from disk that are on their way.", s.Spill.InFlight),
		promtext.Counter("spill_dead_letters_total", "Refused lines that were appended to the file of dead letters.", s.Spill.DeadLetters),
		promtext.Counter("spill_lines_too_old_total", "Expired lines that were too old; the others found no room.", s.Spill.TooOld),
	}, promtext.Failure(s.Failing, s.LastErrorTime))
}

func (w *Writer) countRequest() { w.count(func(s *Stats) { s.Requests++ }) }
func (w *Writer) countRetry()   { w.count(func(s *Stats) { s.Retries++ }) }

func (w *Writer) countError(err error) {
	clean, now := w.clean(err), time.Now()
	w.count(func(s *Stats) { s.Errors++; s.Failures++; s.LastError, s.LastErrorTime = clean, now })
	if e, ok := errors.AsType[*statusError](err); ok && e.refuses() {
		w.noteRefusal(e)
	}
}

// countSuccess counts lines settled, whatever became of them.
func (w *Writer) countSuccess() {
	now := time.Now()
	w.count(func(s *Stats) { s.Failures, s.LastSuccess = 0, now })
}

func (w *Writer) count(f func(*Stats)) {
	w.mu.Lock()
	f(&w.stats)
	w.mu.Unlock()
}
