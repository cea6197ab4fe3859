package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"
)

// streamPiece is the most that one write to a connection holds, in bytes
// (unless a single line is longer), and what Options.WriteTimeout bounds.
const streamPiece = 256 << 10

// A stream sends newline-delimited lines over one connection at a time: TCP,
// TLS or a local socket. All fields are owned by the holder of the Writer's turn.
type stream struct {
	w       *Writer
	network string
	tls     *tls.Config // nil without TLS
	form    frames      // nil form: lines as they are
	link    *link       // nil when there is none
	lost    error       // a link broke with lines on the way; told by the next confirm
}

func newStream(w *Writer) *stream {
	s := &stream{w: w, network: w.addr.network, form: newFrames(w)}
	if w.addr.tls {
		s.tls = w.opt.TLSConfig
		if s.tls.ServerName == "" {
			s.tls.ServerName = w.addr.host
		}
	}
	return s
}

func (s *stream) send(ctx context.Context, p []byte) (settled, error) {
	piece := firstPiece(p, streamPiece)
	wire := s.form.encode(piece)
	if len(wire) == 0 {
		return s.settle(piece, 0), nil
	}
	for {
		kept := s.checkLink()
		if !kept {
			if err := s.dial(ctx); err != nil {
				return settled{}, err
			}
		}
		n, err := s.write(ctx, wire)
		if err == nil {
			n = len(wire)
		}
		done := s.settle(piece, n)
		s.link.lines += done.written
		if err == nil {
			return done, nil
		}
		s.drop(err)
		var ne net.Error
		if n == 0 && kept && ctx.Err() == nil && !(errors.As(err, &ne) && ne.Timeout()) {
			s.w.countError(err)
			s.w.countRetry()
			continue // the connection died unseen while it was idle
		}
		return done, err
	}
}

// settle says what became of piece after n bytes of what carries it.
func (s *stream) settle(piece []byte, n int) settled {
	done := s.form.settle(piece, n)
	if done.oversized > 0 {
		s.w.noteRefused(done.oversized, fmt.Sprintf("a message is longer than Options.Syslog.MaxMessage, %d bytes", s.form.max))
	}
	return done
}

// checkLink reports whether there is a connection that the peer has not left.
func (s *stream) checkLink() bool {
	if s.link == nil {
		return false
	}
	select {
	case <-s.link.gone:
		if s.link.err != nil {
			s.w.countError(s.link.err)
		}
		s.drop(s.link.err)
		return false
	default:
		return true
	}
}

func (s *stream) dial(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.w.opt.DialTimeout,
		fmt.Errorf("no connection within %v: %w", s.w.opt.DialTimeout, context.DeadlineExceeded))
	defer cancel()
	c, err := s.w.meter.dial(ctx, s.network, s.w.addr.dial)
	if err != nil {
		return withCause(ctx, err) // its text begins with "dial"
	}
	raw := c.(*meteredConn)
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
	s.link = l
	return nil
}

// withCause adds to err why ctx ended, if it did.
func withCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// write writes wire and returns how many bytes the system took.
func (s *stream) write(ctx context.Context, wire []byte) (int, error) {
	l := s.link
	l.raw.SetWriteDeadline(time.Now().Add(s.w.opt.WriteTimeout)) // fails only on a closed connection, as the Write will
	stop := context.AfterFunc(ctx, func() { l.raw.SetWriteDeadline(time.Unix(1, 0)) })
	defer stop()
	s.w.countRequest()
	n, err := l.conn.Write(wire)
	if err != nil {
		err = withCause(ctx, err)
	}
	return n, err
}

// drop gives up the link. err is nil if the peer ended it in order.
func (s *stream) drop(err error) {
	l := s.link
	s.link = nil
	if err == nil && l.lines > 0 {
		err = l.verify()
	}
	l.raw.Close() // not l.conn: TLS would wait for room to say goodbye
	<-l.gone
	if err == nil || l.lines == 0 {
		return
	}
	s.lost = fmt.Errorf("connection broke after %d lines, of which the last may be lost: %w", l.lines, err)
	s.w.noteBroken(l.lines, err)
}

// confirm ends the connection in order and waits for the peer to do the same.
func (s *stream) confirm(ctx context.Context) error {
	if s.checkLink() && s.link.lines > 0 {
		s.drop(s.finish(ctx))
	}
	err := s.lost
	if s.w.life.Err() == nil { // else Shutdown returns it too
		s.lost = nil
	}
	return err
}

func (s *stream) finish(ctx context.Context) error {
	l := s.link
	if ctx.Err() != nil {
		return fmt.Errorf("no time to hear whether the peer has read everything: %w", ctx.Err())
	}
	l.raw.SetWriteDeadline(time.Now().Add(s.w.opt.WriteTimeout))
	stop := context.AfterFunc(ctx, func() { l.raw.SetWriteDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := l.conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		return fmt.Errorf("half-close: %w", err)
	}
	select {
	case <-l.gone:
		return l.err
	case <-s.w.life.Done():
		return errors.New("broken off by Shutdown before the peer had read everything")
	case <-ctx.Done():
		return fmt.Errorf("the peer has not read to the end, or does not close when it has: %w", ctx.Err())
	}
}

func (s *stream) close() {
	if s.link != nil {
		s.drop(nil)
	}
}
