package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"
)

// dial connects a socket to the peer. Over UDP it takes the next address of the
// peer's name if the one before has failed.
func (g *datagramSender) dial(ctx context.Context) error {
	ctx, cancel := withTimeout(ctx, g.w.opt.dial, "connection")
	defer cancel()
	addrs := []string{g.w.addr.dial}
	if !g.w.addr.local() {
		var err error
		if addrs, err = g.name.lookUp(ctx); err != nil {
			return withCause(ctx, fmt.Errorf("dial %s: %w", g.network, err))
		}
		g.name.looked = time.Now()
	}
	var err error
	for i := range addrs {
		l, dialErr := g.connect(ctx, addrs[(g.name.failures+i)%len(addrs)])
		if err = dialErr; err == nil {
			g.link, g.unproven = l, true
			return nil
		}
	}
	return withCause(ctx, err)
}

// resolveEvery is the interval of looking up the name of a UDP peer. A socket does not
// notice that the peer has moved: it keeps sending to the old address.
const resolveEvery = time.Minute

// A peerName is the name of a UDP peer. Its fields are owned by the datagramSender.
type peerName struct {
	w        *Writer
	every    time.Duration      // between look-ups; 0 for an address, which stays
	looked   time.Time          // when the latest look-up began
	failures int                // sockets given up: each attempt begins with another address
	answer   chan []string      // of the look-up under way, nil if it failed; nil: none is under way
	cancel   context.CancelFunc // of the look-up under way
}

func newPeerName(w *Writer) peerName {
	n := peerName{w: w}
	if _, err := netip.ParseAddr(w.addr.host); err != nil && !w.addr.local() {
		n.every = resolveEvery
	}
	return n
}

// lookUp returns the addresses of the name, at least one.
func (n *peerName) lookUp(ctx context.Context) (addrs []string, err error) {
	host, port, err := net.SplitHostPort(n.w.addr.dial)
	if err != nil {
		return nil, err
	}
	ips, err := n.w.dialer.net.Resolver.LookupNetIP(ctx, "ip", host)
	for _, ip := range ips {
		addrs = append(addrs, net.JoinHostPort(ip.Unmap().String(), port))
	}
	return addrs, err
}

// followName gives up the socket if the name no longer has its address. The look-up goes
// on while lines are sent.
func (g *datagramSender) followName(ctx context.Context) {
	n := &g.name
	select {
	case addrs := <-n.answer:
		n.close()
		if len(addrs) > 0 && !slices.Contains(addrs, g.link.addr) {
			g.closeInOrder(ctx)
			return
		}
	default:
	}
	if n.every == 0 || n.answer != nil || time.Since(n.looked) < n.every {
		return
	}
	n.looked = time.Now()
	look, cancel := context.WithTimeout(n.w.life, n.w.opt.dial)
	answer := make(chan []string, 1)
	n.answer, n.cancel = answer, cancel
	go func() {
		defer close(answer)
		addrs, _ := n.lookUp(look) // an error says nothing of the address in use
		answer <- addrs
	}()
}

// closeInOrder closes the socket, after a moment for refusals.
func (g *datagramSender) closeInOrder(ctx context.Context) {
	if g.link.lines > 0 {
		if err := g.awaitRefusal(ctx); refuses(err) {
			g.abandon(err)
			return
		}
	}
	g.link.conn.Close()
	g.link = nil
}

// close ends the look-up under way, if there is one.
func (n *peerName) close() {
	if n.answer == nil {
		return
	}
	n.cancel()
	for range n.answer {
	}
	n.answer = nil
}

// A datagramSocket is a socket that is connected to a peer's.
type datagramSocket struct {
	conn   *countedConn
	socket os.FileInfo // of a local peer, the same before and after the dial; nil if unknown
	path   string      // of a local peer
	addr   string      // that it was dialled by
	lines  uint64      // sent since the last confirm; owned by the datagramSender
}

// connect dials a socket to addr. If the peer is replaced meanwhile, nobody knows to which
// of the two: connect dials again, once.
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

// sameSocket reports whether two calls of Stat, nil if they failed, found the same socket.
func sameSocket(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == b
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime())
}

var (
	errUnread   = errors.New("the peer has not read everything")
	errReplaced = errors.New("another socket is in its place")
)

// awaitRead waits until the peer's queue has no lines of l, and checks that the peer
// exists: the system also empties the queue of one that is gone.
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

// checkPeer returns an error if the local peer that l was connected to is gone. It sends
// nothing.
func (l *datagramSocket) checkPeer() error {
	if l.socket == nil {
		return nil
	}
	now, err := os.Stat(l.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return err
	case err != nil:
		return nil // the path cannot be read any more, which proves nothing
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

// keepUnread keeps l, whose peer is slow, for confirm, if the peer has not read all its
// lines yet.
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
			g.w.noteBroken(&g.lost, l.lines, err)
		}
		return true
	})
}

// confirmUnread is confirm for the sockets of keepUnread. Its error is that lines are
// still unread; g.lost has those that are lost.
func (g *datagramSender) confirmUnread(ctx context.Context) error {
	for len(g.unread) > 0 {
		l := g.unread[0]
		err := g.awaitRead(ctx, l)
		if errors.Is(err, errUnread) {
			return err
		}
		l.conn.Close()
		if err != nil {
			g.w.noteBroken(&g.lost, l.lines, err)
		}
		g.unread = g.unread[1:]
	}
	return nil
}
