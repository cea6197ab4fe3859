package httpfast

import (
	"io"
	"net"
	"net/netip"
	"sync"
)

// rest is the listener of the connections that are handed over.
type rest struct {
	addr  net.Addr
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newRest(addr net.Addr) *rest {
	return &rest{addr: addr, conns: make(chan net.Conn), done: make(chan struct{})}
}

// Accept implements net.Listener.
func (r *rest) Accept() (net.Conn, error) {
	select {
	case c := <-r.conns:
		return c, nil
	case <-r.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (r *rest) Close() error {
	r.once.Do(func() { close(r.done) })
	return nil
}

// Addr implements net.Listener.
func (r *rest) Addr() net.Addr { return r.addr }

// give hands c over, or closes it if nobody is there any more.
func (r *rest) give(c net.Conn) {
	select {
	case r.conns <- c:
	case <-r.done:
		c.Close()
	}
}

// A handed connection begins with what was read of it before.
type handed struct {
	*net.TCPConn
	s      *Server
	ended  sync.Once // by Close, or because it was taken back
	from   string
	remote net.Addr // as it was accepted: a connection that was reset has none any more
	first  []byte

	onRead func([]byte) error // nil: nobody looks

	inVain int // as in conn
	stays  int // for so many requests of HTTP/1; used by the handler of one
}

// addressOf returns the address that remote names, or nil.
func addressOf(remote string) net.Addr {
	a, err := netip.ParseAddrPort(remote)
	if err != nil {
		return nil
	}
	return net.TCPAddrFromAddrPort(a)
}

// Close implements net.Conn.
func (c *handed) Close() error {
	err := c.TCPConn.Close()
	c.ended.Do(c.s.o.ended)
	return err
}

// RemoteAddr implements net.Conn.
func (c *handed) RemoteAddr() net.Addr {
	if c.remote == nil {
		return c.TCPConn.RemoteAddr()
	}
	return c.remote
}

// OnRead has f look at what each Read has got, which fails if f does. It is
// called before the first one.
func (c *handed) OnRead(f func(p []byte) error) { c.onRead = f }

// Read implements net.Conn.
func (c *handed) Read(p []byte) (int, error) {
	n, err := c.read(p)
	if c.onRead != nil && n > 0 {
		if wrong := c.onRead(p[:n]); wrong != nil {
			return 0, wrong
		}
	}
	return n, err
}

func (c *handed) read(p []byte) (int, error) {
	if len(c.first) == 0 {
		return c.TCPConn.Read(p)
	}
	n := copy(p, c.first)
	if c.first = c.first[n:]; len(c.first) == 0 {
		c.first = nil
	}
	return n, nil
}

// WriteTo is there because that of a TCPConn would leave out what was read.
func (c *handed) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{c})
}
