package remote

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// A link is one connection and the goroutine that watches it.
type link struct {
	conn  net.Conn // what lines are written to: raw, or TLS over it
	raw   *meteredConn
	lines uint64    // written; owned by the stream
	ended time.Time // when our side was; owned by the stream
	gone  chan struct{}
	err   error // why the peer is gone, nil for an orderly end; set before gone is closed
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
