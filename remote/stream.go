package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"
)

// streamPiece is the largest write to a connection in bytes, unless a single line is
// longer. A third of Options.Timeout bounds it.
const streamPiece = 256 << 10

// A streamSender sends newline-delimited lines over one connection at a time: TCP,
// TLS or a local socket. All fields are owned by the holder of the Writer's semaphore.
type streamSender struct {
	w        *Writer
	network  string
	tls      *tls.Config   // nil without TLS
	form     frames        // nil form: lines as they are
	link     *link         // nil without a connection
	ending   *link         // half-closed by a confirm that could not wait for the peer's end; or nil
	listens  time.Duration // how long awaitEarlyEnd waits at least
	unproven bool          // nothing was sent yet, or the latest attempt or connection failed
	lost     report        // links that broke with lines on the way; told by the next confirm
}

func newStreamSender(w *Writer) *streamSender {
	s := &streamSender{w: w, network: w.addr.network, form: newFrames(w), listens: listenTime, unproven: true}
	if w.addr.tls {
		s.tls = w.opt.TLSConfig
		if s.tls.ServerName == "" {
			s.tls.ServerName = w.addr.host
		}
	}
	return s
}

func (s *streamSender) send(ctx context.Context, p []byte) (outcome, error) {
	done, err := s.sendPiece(ctx, firstPiece(p, streamPiece))
	if done.oversized > 0 {
		s.w.noteRefused(done.oversized, fmt.Sprintf("a message is longer than Options.Syslog.MaxMessage, %d bytes", s.form.max))
	}
	return done, err
}

func (s *streamSender) sendPiece(ctx context.Context, piece []byte) (outcome, error) {
	wire := s.form.encode(piece)
	if len(wire) == 0 {
		return s.form.settle(piece, 0), nil
	}
	for {
		kept, err := s.checkLink(ctx)
		if err != nil {
			return outcome{}, err
		}
		if !kept {
			if err := s.awaitPrevious(ctx); err != nil {
				return outcome{}, err
			}
			if err := s.dial(ctx); err != nil {
				s.unproven = true
				return outcome{}, err
			}
		}
		n, err := s.write(ctx, wire)
		if err == nil {
			n = len(wire)
		}
		if s.link.left {
			if err == nil {
				err = s.link.awaitAcks(ctx)
			}
			if errors.Is(err, errUnread) {
				err = nil // a later call finds out
			} else if err != nil {
				n, err = 0, errEndsEarly(err)
			}
		}
		done := s.form.settle(piece, n)
		s.link.lines += done.written
		if err == nil {
			return done, nil
		}
		s.abandon(ctx, err)
		var ne net.Error
		if n == 0 && kept && ctx.Err() == nil && !(errors.As(err, &ne) && ne.Timeout()) {
			s.w.countError(err)
			s.w.countRetry()
			continue // the connection died unseen while it was idle
		}
		return done, err
	}
}

// checkLink reports whether there is a connection that the peer has not left.
func (s *streamSender) checkLink(ctx context.Context) (bool, error) {
	if s.link == nil {
		return false, nil
	}
	select {
	case <-s.link.gone:
		if s.link.err != nil {
			s.w.countError(s.link.err)
		}
		return false, s.abandon(ctx, s.link.err)
	default:
		return true, nil
	}
}

func (s *streamSender) dial(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.w.opt.dial,
		fmt.Errorf("no connection within %v: %w", s.w.opt.dial, context.DeadlineExceeded))
	defer cancel()
	begin := time.Now()
	c, err := s.w.dialer.dial(ctx, s.network, s.w.addr.dial)
	if err != nil {
		return withCause(ctx, err) // its text begins with "dial"
	}
	raw := c.(*countedConn)
	l := &link{conn: raw, raw: raw, gone: make(chan struct{})}
	if s.tls != nil {
		c := tls.Client(raw, s.tls)
		if err := c.HandshakeContext(ctx); err != nil {
			raw.Close()
			return fmt.Errorf("TLS handshake: %w", withCause(ctx, err))
		}
		l.conn = c
	}
	go l.watch()
	if s.unproven {
		if err := s.awaitEarlyEnd(ctx, l, time.Since(begin)); err != nil {
			raw.Close()
			return err
		}
	}
	s.link = l
	return nil
}

// awaitEarlyEnd waits a moment for the end of l before anything is sent on it: a load
// balancer whose servers are down may accept every connection and close it at once. took
// is how long the dial was.
func (s *streamSender) awaitEarlyEnd(ctx context.Context, l *link, took time.Duration) error {
	select {
	case <-l.gone:
		if l.err != nil {
			return errEndsEarly(l.err)
		}
		l.left = true
	case <-time.After(max(s.listens, min(2*took, ackWait))): // two round trips
		s.unproven = false
	case <-ctx.Done():
	}
	return nil
}

func errEndsEarly(err error) error {
	return fmt.Errorf("the peer ends connections before lines come (is it a load balancer without servers?): %w", err)
}

// withCause adds to err why ctx ended, if it did.
func withCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// write writes wire and returns how many bytes the system accepted.
func (s *streamSender) write(ctx context.Context, wire []byte) (int, error) {
	l := s.link
	l.raw.SetWriteDeadline(time.Now().Add(s.w.opt.attempt)) // fails only on a closed connection, as the Write will
	defer expireWith(ctx, l.raw.SetWriteDeadline)()
	s.w.countRequest()
	n, err := l.conn.Write(wire)
	if err != nil {
		err = withCause(ctx, err)
	}
	return n, err
}
