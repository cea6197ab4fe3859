package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// abandon gives up the link. err is nil if the peer ended it in order; only then
// abandon may return an error, which is that of retire.
func (s *streamSender) abandon(ctx context.Context, err error) error {
	if err := s.retire(ctx, s.link, err); err != nil {
		return err
	}
	s.link = nil
	return nil
}

// retire closes l, which the peer has ended in order if err is nil, and records lines that
// may be lost. If ctx or the Writer ends before they are known, it returns an error and
// does nothing.
func (s *streamSender) retire(ctx context.Context, l *link, err error) error {
	if err == nil && l.lines > 0 {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.w.life, cancel)()
		if err = l.awaitAcks(ctx); errors.Is(err, errUnread) {
			return err
		}
	}
	l.raw.Close() // not l.conn: TLS would wait for room to say goodbye
	<-l.gone
	if err == nil || l.lines == 0 {
		return nil
	}
	s.unproven = true
	s.w.noteBroken(&s.lost, l.lines, err)
	return nil
}

// confirm ends the connection in order and waits for the peer to do the same. If ctx ends
// first, the next confirm goes on waiting: a nil covers all lines.
func (s *streamSender) confirm(ctx context.Context) error {
	unread, kept := s.awaitEnd(ctx), false
	if unread == nil {
		kept, unread = s.checkLink(ctx)
	}
	if kept && s.link.lines > 0 {
		unread = s.finish(ctx)
	}
	return errors.Join(s.w.takeBroken(&s.lost), unread)
}

// finish sends the end of the link and waits for the peer's, until ctx ends.
func (s *streamSender) finish(ctx context.Context) error {
	l := s.link
	if ctx.Err() != nil {
		return fmt.Errorf("%w, as far as is known: %w", errUnread, ctx.Err())
	}
	defer expireWith(ctx, l.raw.SetWriteDeadline)()
	defer expireWith(s.w.life, l.raw.SetWriteDeadline)()
	err := l.conn.(interface{ CloseWrite() error }).CloseWrite()
	if isTimeout(err) {
		err = l.raw.CloseWrite() // TLS has found no room to say goodbye; the end of the stream needs none
	}
	if err != nil {
		return s.abandon(ctx, fmt.Errorf("half-close: %w", err))
	}
	l.ended = time.Now()
	s.ending, s.link = l, nil
	return s.awaitEnd(ctx)
}

// awaitEnd waits until the peer has ended the half-closed link, if there is one. If ctx
// ends first, it returns an error and keeps the link.
func (s *streamSender) awaitEnd(ctx context.Context) error {
	l := s.ending
	if l == nil {
		return nil
	}
	select {
	case <-l.gone:
	case <-s.w.life.Done():
	case <-ctx.Done():
	}
	select {
	case <-l.gone: // whether or not the time is up
	default:
		return fmt.Errorf("%w, %d lines on one connection, or does not close when it has: %w", errUnread, l.lines, cmp.Or(ctx.Err(), s.w.life.Err()))
	}
	if err := s.retire(ctx, l, l.err); err != nil {
		return err
	}
	s.ending = nil
	return nil
}

// awaitPrevious gives the peer time to read what it was sent on the link before, so that
// lines keep their order. A peer that never closes gets no more than a write's time. The
// error is that ctx has ended.
func (s *streamSender) awaitPrevious(ctx context.Context) error {
	if s.ending == nil {
		return nil
	}
	patience, cancel := context.WithDeadline(ctx, s.ending.ended.Add(s.w.opt.attempt))
	defer cancel()
	if err := s.awaitEnd(patience); err != nil && ctx.Err() != nil {
		return err
	}
	return nil
}

func (s *streamSender) close() {
	for _, l := range []*link{s.ending, s.link} {
		if l != nil {
			s.retire(context.Background(), l, errUnread)
		}
	}
	s.ending, s.link = nil, nil
}

// A link is one connection and the goroutine that watches it.
type link struct {
	conn net.Conn // what lines are written to: raw, or TLS over it
	raw  *countedConn
	gone chan struct{} // closed once the peer is gone
	err  error         // why; nil for an orderly end; set before gone is closed

	// owned by the stream
	lines       uint64    // written
	left        bool      // the peer's side had ended before the first write
	ended       time.Time // when our side was
	ackDeadline time.Time // of awaitAcks, zero before its first call
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

// ackWait is how long awaitAcks waits for the last acknowledgement.
const ackWait = time.Second

// awaitAcks returns nil if the peer, which has ended the connection in order, had taken
// everything by then. What was on the way is answered with a reset, which comes after the
// end that was read. An error that wraps errUnread says that ctx has ended first: a later
// call finds out.
func (l *link) awaitAcks(ctx context.Context) error {
	if l.ackDeadline.IsZero() {
		l.ackDeadline = time.Now().Add(ackWait)
	}
	if l.conn != net.Conn(l.raw) {
		// TLS says that it ends before TCP does.
		l.raw.SetReadDeadline(l.ackDeadline.Add(ackWait/20 - ackWait))
		stop := expireWith(ctx, l.raw.SetReadDeadline)
		_, err := io.Copy(io.Discard, l.raw)
		stop()
		if err != nil && !isTimeout(err) {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%w, as far as is known: %w", errUnread, ctx.Err())
		}
	}
	for wait := time.Millisecond; ; wait = min(2*wait, 20*time.Millisecond) {
		n, err := unacked(l.raw.Conn)
		switch {
		case err != nil:
			return fmt.Errorf("the peer closed while lines were on the way: %w", err)
		case n == 0:
			return nil
		case time.Now().After(l.ackDeadline):
			return fmt.Errorf("the peer closed while lines were on the way: %d bytes not acknowledged", n)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return fmt.Errorf("%w: it has closed with %d bytes on the way: %w", errUnread, n, ctx.Err())
		}
	}
}
