package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

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
		var ne net.Error
		if err != nil && !(errors.As(err, &ne) && ne.Timeout()) {
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
