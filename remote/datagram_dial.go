package remote

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"
)

// dial connects a socket to the peer. Over UDP it takes the next address of the
// peer's name if the one before has failed.
func (g *datagramSender) dial(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, g.w.opt.dial,
		fmt.Errorf("no connection within %v: %w", g.w.opt.dial, context.DeadlineExceeded))
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
