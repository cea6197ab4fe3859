package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"time"
)

// A datagramSocket is a socket that is connected to a peer's.
type datagramSocket struct {
	conn   *countedConn
	socket os.FileInfo // of a local peer, the same before and after the dial; nil over UDP, or if it cannot be seen
	path   string      // of a local peer
	addr   string      // that it was dialled by
	lines  uint64      // sent since the last confirm; owned by the datagramSender
}

// connect dials a socket to addr. If the peer is replaced meanwhile, it is not
// known which of the two the socket is connected to: connect dials again, once.
func (g *datagramSender) connect(ctx context.Context, addr string) (*datagramSocket, error) {
	l := &datagramSocket{addr: addr}
	if g.w.addr.local() {
		l.path = addr
	}
	for range 2 {
		if l.path != "" {
			l.socket, _ = os.Stat(l.path) // the dial says what is wrong
		}
		c, err := g.w.dialer.dial(ctx, g.network, addr)
		if err != nil {
			return nil, err
		}
		l.conn = c.(*countedConn)
		if l.path == "" {
			return l, nil
		}
		if now, _ := os.Stat(l.path); sameSocket(l.socket, now) {
			return l, nil
		}
		c.Close()
	}
	return nil, fmt.Errorf("dial %s %s: %w", g.network, addr, errReplaced)
}

// sameSocket reports whether two looks at a path, nil where it cannot be seen, saw
// the same socket.
func sameSocket(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == b
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime())
}

// errUnread is what confirm returns while lines stand in the peer's queue.
var errUnread = errors.New("the peer has not read everything")

var errReplaced = errors.New("another socket is in its place")

// taken waits until nothing of l stands in the peer's queue. The system empties
// the queue of a peer that has gone, too, so that is looked at.
func (g *datagramSender) awaitRead(ctx context.Context, l *datagramSocket) error {
	for wait := time.Millisecond; ; wait = min(2*wait, 20*time.Millisecond) {
		switch n, err := unacked(l.conn.Conn); {
		case err != nil:
			return err
		case n == 0:
			return l.checkPeer()
		}
		select {
		case <-time.After(wait):
		case <-g.w.life.Done():
			return fmt.Errorf("broken off by Shutdown: %w", errUnread)
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", errUnread, ctx.Err())
		}
	}
}

// gone returns why the local peer that l was connected to is not there any more,
// or nil. It sends nothing.
func (l *datagramSocket) checkPeer() error {
	if l.socket == nil {
		return nil
	}
	now, err := os.Stat(l.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return err
	case err != nil:
		return nil // it may not be seen any more, which says nothing
	case !sameSocket(l.socket, now):
		return errReplaced
	}
	c, err := net.Dial("unixgram", l.path)
	if err == nil {
		c.Close()
	} else if errors.Is(err, errnoRefused) {
		return err
	}
	return nil
}

// keepUnread keeps l, which was given up since its peer is slow, for confirm, if
// lines of it are not read yet.
func (g *datagramSender) keepUnread(l *datagramSocket) {
	g.unread = slices.DeleteFunc(append(g.unread, l), func(l *datagramSocket) bool {
		n, err := unacked(l.conn.Conn)
		if n > 0 && err == nil && l.lines > 0 {
			l.conn.uncount()
			return false
		}
		l.conn.Close()
		if err == nil && l.lines > 0 {
			err = l.checkPeer()
		}
		if err != nil {
			g.reportLost(l, err)
		}
		return true
	})
}

// confirmUnread is confirm for what keepUnread has kept. Its error is that lines are
// still not read; g.lost tells of those that are lost.
func (g *datagramSender) confirmUnread(ctx context.Context) error {
	for len(g.unread) > 0 {
		l := g.unread[0]
		err := g.awaitRead(ctx, l)
		if errors.Is(err, errUnread) {
			return err
		}
		l.conn.Close()
		if err != nil {
			g.reportLost(l, err)
		}
		g.unread = g.unread[1:]
	}
	return nil
}
