package remote

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// A dialer opens connections and counts their bytes.
type dialer struct {
	net        net.Dialer
	ackTimeout time.Duration // of a TCP peer to which something is on the way
	connects   atomic.Uint64
	bytes      atomic.Uint64
	open       atomic.Int64
	latest     atomic.Value // string, the address of the latest peer
}

func newDialer(dialTimeout time.Duration) *dialer {
	m := &dialer{ackTimeout: time.Minute}
	m.net = net.Dialer{
		Timeout: dialTimeout,
		// This notices within a minute that an idle peer vanished without a FIN.
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 15 * time.Second, Count: 3},
		Control: func(network, _ string, c syscall.RawConn) error {
			return setAckTimeout(network, c, m.ackTimeout)
		},
	}
	return m
}

func (m *dialer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := m.net.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	m.connects.Add(1)
	m.open.Add(1)
	m.latest.Store(c.RemoteAddr().String())
	return &countedConn{Conn: c, m: m}, nil
}

type countedConn struct {
	net.Conn
	m         *dialer
	uncounted atomic.Bool
}

func (c *countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.m.bytes.Add(uint64(n))
	return n, err
}

func (c *countedConn) Close() error {
	c.uncount()
	return c.Conn.Close()
}

// past is a deadline that ends a wait on a connection.
var past = time.Unix(1, 0)

// expireWith sets a deadline in the past once ctx ends, but none after stop has returned.
func expireWith(ctx context.Context, deadline func(time.Time) error) (stop func()) {
	done := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() {
		deadline(past)
		close(done)
	})
	return func() {
		if !cancel() {
			<-done
		}
	}
}

// uncount removes c from the open connections, once.
func (c *countedConn) uncount() {
	if !c.uncounted.Swap(true) {
		c.m.open.Add(-1)
	}
}

// CloseWrite sends a FIN; reading goes on.
func (c *countedConn) CloseWrite() error {
	if h, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return h.CloseWrite()
	}
	return errors.New("this connection has no half-close")
}
