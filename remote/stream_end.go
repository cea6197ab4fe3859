package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// drop gives up the link. err is nil if the peer ended it in order.
func (s *stream) drop(err error) {
	l := s.link
	s.link = nil
	s.bury(l, err)
}

// bury closes l, which the peer has ended in order if err is nil. What became of
// lines on the way is noted then.
func (s *stream) bury(l *link, err error) {
	if err == nil && l.lines > 0 {
		err = l.verify()
	}
	l.raw.Close() // not l.conn: TLS would wait for room to say goodbye
	<-l.gone
	if err == nil || l.lines == 0 {
		return
	}
	s.lost = fmt.Errorf("connection broke after %d lines, of which the last may be lost: %w", l.lines, err)
	s.w.note(broken, l.lines, err)
}

// confirm ends the connection in order and waits for the peer to do the same. If
// the time is up before, the next confirm goes on waiting: a nil is of all lines.
func (s *stream) confirm(ctx context.Context) error {
	unread := s.awaitEnd(ctx)
	if unread == nil && s.checkLink() && s.link.lines > 0 {
		unread = s.finish(ctx)
	}
	err := errors.Join(s.lost, unread)
	if s.w.life.Err() == nil { // else Shutdown returns it too
		s.lost = nil
	}
	return err
}

// finish sends the end of the link and waits for the peer's. Its error is that
// this takes longer than ctx.
func (s *stream) finish(ctx context.Context) error {
	l := s.link
	if ctx.Err() != nil {
		return fmt.Errorf("%w, as far as is known: %w", errUnread, ctx.Err())
	}
	hurry := func() { l.raw.SetWriteDeadline(time.Unix(1, 0)) }
	defer context.AfterFunc(ctx, hurry)()
	defer context.AfterFunc(s.w.life, hurry)()
	err := l.conn.(interface{ CloseWrite() error }).CloseWrite()
	var ne net.Error
	if errors.As(err, &ne) && ne.Timeout() {
		err = l.raw.CloseWrite() // TLS has found no room to say goodbye; the end of the stream needs none
	}
	if err != nil {
		s.drop(fmt.Errorf("half-close: %w", err))
		return nil
	}
	l.ended = time.Now()
	s.ending, s.link = l, nil
	return s.awaitEnd(ctx)
}

// awaitEnd waits until the peer has ended the link that was half-closed, if there
// is one. Its error is that this takes longer than ctx; the link is kept then.
func (s *stream) awaitEnd(ctx context.Context) error {
	l := s.ending
	if l == nil {
		return nil
	}
	select {
	case <-l.gone: // whether or not the time is up
	default:
		select {
		case <-l.gone:
		case <-s.w.life.Done():
			return fmt.Errorf("%w, %d lines on one connection: broken off by Shutdown", errUnread, l.lines)
		case <-ctx.Done():
			return fmt.Errorf("%w, %d lines on one connection, or does not close when it has: %w", errUnread, l.lines, ctx.Err())
		}
	}
	s.ending = nil
	s.bury(l, l.err)
	return nil
}

// outwait gives the peer time to read what it was sent on the link before, so
// that lines keep their order, but not for ever: it may be one that never closes.
// Its error is that ctx has ended before.
func (s *stream) outwait(ctx context.Context) error {
	if s.ending == nil {
		return nil
	}
	patience, cancel := context.WithDeadline(ctx, s.ending.ended.Add(s.w.opt.WriteTimeout))
	defer cancel()
	if err := s.awaitEnd(patience); err != nil && ctx.Err() != nil {
		return err
	}
	return nil
}

func (s *stream) close() {
	for _, l := range []*link{s.ending, s.link} {
		if l != nil {
			s.bury(l, errUnread)
		}
	}
	s.ending, s.link = nil, nil
}
