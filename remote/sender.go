package remote

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/rollway/rollway/internal/backoff"
)

// A sender is one way to talk to a peer. One goroutine at a time calls it.
type sender interface {
	// send passes on the beginning of p, at least one line and only whole
	// ones; p ends in a line end. With a nil error settled.n is positive.
	send(ctx context.Context, p []byte) (settled, error)
	// confirm returns nil when all that was sent is known to have arrived.
	confirm(ctx context.Context) error
	// close gives up the connections.
	close()
}

// settled says what became of the first n bytes given to a sender.
type settled struct {
	n                           int
	written, refused, oversized uint64 // lines
	cut                         uint64 // those of written of which a part was left out
}

func (d settled) lines() uint64 { return d.written + d.refused + d.oversized }

// count takes them over into s.
func (d settled) count(s *Stats) {
	s.Pending -= d.lines()
	s.Written += d.written
	s.Truncated += d.cut
	s.Dropped.Refused += d.refused
	s.Dropped.TooLarge += d.oversized
}

func newSender(w *Writer) sender {
	switch w.addr.carrier {
	case carryHTTP:
		switch w.addr.format {
		case formatLoki:
			return newBulk(w, newLokiFormat(w.opt.Loki))
		case formatElastic:
			return newBulk(w, new(elasticFormat))
		}
		return newPoster(w)
	case carryDatagram:
		return newGram(w)
	case carryEither:
		return newEither(w)
	default:
		return newStream(w)
	}
}

// retryWait is the wait before retry number attempt, from 0, within one Write.
// asked is what the peer asked for.
func retryWait(attempt int, asked time.Duration) time.Duration {
	if asked > 0 {
		asked += rand.N(asked/10 + 1)
	}
	return max(backoff.Wait(attempt, 100*time.Millisecond, 5*time.Second), asked)
}
