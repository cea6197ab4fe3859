// Package memnet is a network within the process.
package memnet

import (
	"context"
	"net"
	"sync"
)

// A Listener takes the connections of its Dial. It is safe for concurrent use.
type Listener struct {
	conns  chan net.Conn
	closed chan struct{}
	close  func()
}

// Listen returns a Listener. It takes no port and needs no Close.
func Listen() *Listener {
	closed := make(chan struct{})
	return &Listener{make(chan net.Conn), closed, sync.OnceFunc(func() { close(closed) })}
}

// Dial returns a connection, as net.Pipe makes it, once Accept has taken its other end.
func (l *Listener) Dial(ctx context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. Connections stay open.
func (l *Listener) Close() error {
	l.close()
	return nil
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }
