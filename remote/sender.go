package remote

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/url"
	"time"

	"github.com/rollway/rollway/internal/backoff"
)

// A sender sends lines over one transport. One goroutine at a time calls it.
type sender interface {
	// send passes on the beginning of p, at least one line and only whole ones; p ends
	// in a line end. With a nil error the outcome's n is positive.
	send(ctx context.Context, p []byte) (outcome, error)
	// confirm returns nil when all that was sent is known to have arrived.
	confirm(ctx context.Context) error
	// close gives up the connections.
	close()
}

// An outcome is the result of the first n bytes given to a sender.
type outcome struct {
	n                           int
	written, refused, oversized uint64 // lines
	cut                         uint64 // those of written that lost a part
}

func (d outcome) lines() uint64 { return d.written + d.refused + d.oversized }

// count takes them over into s.
func (d outcome) count(s *Stats) {
	s.Pending -= d.lines()
	s.Written += d.written
	s.Truncated += d.cut
	s.Dropped.Refused += d.refused
	s.Dropped.TooLarge += d.oversized
}

// A dialect is how a peer wants its lines. A function that is nil changes nothing.
type dialect struct {
	checkOptions func(*Options, *address) error // fills in the dialect's own options
	completeURL  func(*url.URL) error           // of a peer of HTTP
	http         func(*Options) httpFormat      // nil for streams and datagrams
	contentType  string                         // of the bodies that makes
	growth       int                            // by how much that makes a line longer, roughly
	encoder      func(*Options) messageEncoder  // for streams and datagrams; nil: lines as they are
}

var (
	plainLines     = &dialect{http: func(*Options) httpFormat { return ndjsonFormat{} }, contentType: "application/x-ndjson", growth: 1}
	syslogMessages = &dialect{
		checkOptions: func(o *Options, a *address) error { return o.Syslog.setDefaults(a) },
		encoder:      func(o *Options) messageEncoder { return newSyslogEncoder(o.Syslog) },
	}
	journaldEntries = &dialect{
		checkOptions: func(o *Options, _ *address) error { return o.Journald.setDefaults() },
		encoder:      func(o *Options) messageEncoder { return &journalEncoder{opt: o.Journald} },
	}
	lokiPush = &dialect{
		checkOptions: func(o *Options, _ *address) error { return o.Loki.setDefaults() },
		completeURL:  defaultPath("/loki/api/v1/push"),
		http:         func(o *Options) httpFormat { return newLokiFormat(o.Loki) },
		contentType:  "application/json",
		growth:       2,
	}
	elasticBulk = &dialect{
		completeURL: elasticURL,
		http:        func(*Options) httpFormat { return new(elasticFormat) },
		contentType: "application/x-ndjson",
		growth:      2,
	}
	otlpLogs = &dialect{
		checkOptions: func(o *Options, _ *address) error { return o.OTLP.setDefaults() },
		completeURL:  defaultPath("/v1/logs"),
		http:         func(o *Options) httpFormat { return newOTLPFormat(o.OTLP) },
		contentType:  "application/json",
		growth:       3,
	}
)

func newSender(w *Writer) sender {
	switch w.addr.transport {
	case overHTTP:
		return newHTTPSender(w)
	case overDatagrams:
		return newDatagramSender(w)
	case overLocal:
		return newLocalSender(w)
	default:
		return newStreamSender(w)
	}
}

// newEncoder returns the Writer's encoder of messages; nil: lines are sent as they are.
func (w *Writer) newEncoder() messageEncoder {
	if encoder := w.addr.dialect.encoder; encoder != nil {
		return encoder(&w.opt)
	}
	return nil
}

// retryWait is the wait before retry number attempt, from 0, within one Write.
// asked is what the peer asked for.
func retryWait(attempt int, asked time.Duration) time.Duration {
	if asked > 0 {
		asked += rand.N(asked/10 + 1)
	}
	return max(backoff.Wait(attempt, 100*time.Millisecond, 5*time.Second), asked)
}

// A localSender sends to a local socket of either kind, as syslog(3) does. All fields are
// owned by the holder of the Writer's semaphore.
type localSender struct{ now, other sender }

func newLocalSender(w *Writer) *localSender {
	g, s := newDatagramSender(w), newStreamSender(w)
	g.network, s.network = "unixgram", "unix"
	if !hasUnixgram {
		return &localSender{s, g}
	}
	return &localSender{g, s}
}

func (e *localSender) send(ctx context.Context, p []byte) (outcome, error) {
	done, err := e.now.send(ctx, p)
	if errors.Is(err, errnoPrototype) {
		e.now, e.other = e.other, e.now
		done, err = e.now.send(ctx, p)
	}
	return done, err
}

func (e *localSender) confirm(ctx context.Context) error {
	return errors.Join(e.other.confirm(ctx), e.now.confirm(ctx))
}

func (e *localSender) close() {
	e.now.close()
	e.other.close()
}
