package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// streamPiece is the most that one write to a connection holds, in bytes
// (unless a single line is longer), and what Options.WriteTimeout bounds.
const streamPiece = 256 << 10

// A stream sends newline-delimited lines over one connection at a time: TCP,
// TLS or a local socket. All fields are owned by the holder of the Writer's turn.
type stream struct {
	w    *Writer
	tls  *tls.Config // nil without TLS
	link *link       // nil when there is none
	lost error       // a link broke with lines on the way; told by the next confirm
}

// A link is one connection and the goroutine that watches it.
type link struct {
	conn  net.Conn // what lines are written to: raw, or TLS over it
	raw   *meteredConn
	lines uint64 // written; owned by the stream
	gone  chan struct{}
	err   error // why the peer is gone, nil for an orderly end; set before gone is closed
}

func newStream(w *Writer) *stream {
	s := &stream{w: w}
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
	for {
		kept := s.checkLink()
		if !kept {
			if err := s.dial(ctx); err != nil {
				return settled{}, err
			}
		}
		n, err := s.write(ctx, piece)
		lines := countLines(piece[:n])
		s.link.lines += lines
		if err == nil {
			return settled{n: n, written: lines}, nil
		}
		s.drop(err)
		var ne net.Error
		if n == 0 && kept && ctx.Err() == nil && !(errors.As(err, &ne) && ne.Timeout()) {
			s.w.countError(err)
			s.w.countRetry()
			continue // the connection died unseen while it was idle
		}
		return settled{n: n, written: lines}, err
	}
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
	c, err := s.w.meter.dial(ctx, s.w.addr.network, s.w.addr.dial)
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

// watch reads until the peer ends the connection. What it sends is discarded.
func (l *link) watch() {
	buf := make([]byte, 512)
	for {
		if _, err := l.conn.Read(buf); err != nil {
			if !errors.Is(err, io.EOF) {
				l.err = err
			}
			close(l.gone)
			l.raw.uncount()
			return
		}
	}
}

// write writes piece and returns the length of the whole lines that the system
// took.
func (s *stream) write(ctx context.Context, piece []byte) (int, error) {
	l := s.link
	l.raw.SetWriteDeadline(time.Now().Add(s.w.opt.WriteTimeout)) // fails only on a closed connection, as the Write will
	stop := context.AfterFunc(ctx, func() { l.raw.SetWriteDeadline(time.Unix(1, 0)) })
	defer stop()
	s.w.countRequest()
	n, err := l.conn.Write(piece)
	if err != nil {
		return wholeLines(piece[:n]), withCause(ctx, err)
	}
	return n, nil
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

// verifyTime is how long verify waits for the last acknowledgement.
const verifyTime = time.Second

// verify returns nil if the peer, which has ended the connection in order, had
// taken everything by then. What was on the way when a peer closed is answered
// with a reset, which comes behind the end that was read.
func (l *link) verify() error {
	end := time.Now().Add(verifyTime)
	if l.conn != net.Conn(l.raw) {
		// TLS says that it ends before TCP does.
		l.raw.SetReadDeadline(time.Now().Add(verifyTime / 20))
		var ne net.Error
		if _, err := io.Copy(io.Discard, l.raw); err != nil && !(errors.As(err, &ne) && ne.Timeout()) {
			return err
		}
	}
	for wait := time.Millisecond; ; wait *= 2 {
		n, err := unacked(l.raw.Conn)
		switch {
		case err != nil:
			return fmt.Errorf("the peer closed while lines were on the way: %w", err)
		case n == 0:
			return nil
		case time.Now().After(end):
			return fmt.Errorf("the peer closed while lines were on the way: %d bytes not acknowledged", n)
		}
		time.Sleep(wait)
	}
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
