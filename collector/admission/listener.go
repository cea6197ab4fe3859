package admission

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Listener returns inner with connections that count until they are closed. It
// sends refusal to those over the limit and closes them.
func (l *Limit) Listener(inner net.Listener, refusal []byte) *Listener {
	return &Listener{Listener: inner, limit: l, refusal: refusal, closed: make(chan struct{})}
}

// A Listener accepts connections within a Limit. It is safe for concurrent use.
type Listener struct {
	net.Listener
	Refused func(net.Conn) // is told of those over the limit; nil: nobody is

	limit   *Limit
	refusal []byte
	closing atomic.Int64 // when CloseAfterBacklog was called, in Unix nanoseconds; 0: not yet
	closed  chan struct{}
	close   sync.Once // of closed
}

// Closed is closed once the listener is. What it has accepted counts already then.
func (l *Listener) Closed() <-chan struct{} { return l.closed }

// Close implements net.Listener.
func (l *Listener) Close() error {
	err := l.Listener.Close()
	l.close.Do(func() { close(l.closed) })
	return err
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		c, err := l.accept()
		if err != nil {
			return nil, err
		}
		if conn := l.limit.Admit(c); conn != nil {
			return conn, nil
		}
		if l.Refused != nil {
			l.Refused(c)
		}
		l.limit.refuse(c, l.refusal)
	}
}

// accept accepts a connection or, once the listener is to close, one that is complete.
func (l *Listener) accept() (net.Conn, error) {
	if l.closing.Load() == 0 {
		c, err := l.Listener.Accept()
		if err == nil || l.closing.Load() == 0 {
			return c, err
		}
	}
	if time.Since(time.Unix(0, l.closing.Load())) < backlogTime {
		if c := acceptNow(l.Listener); c != nil {
			return c, nil
		}
	}
	l.Close()
	return nil, net.ErrClosed
}

// backlogTime bounds how long a Listener that is to close accepts: clients may connect
// faster than it does.
const backlogTime = time.Second

// CloseAfterBacklog makes Accept return the connections that are complete, and then
// close the listener. The system resets the connections that a closed listener has not
// accepted, and the requests in them.
func (l *Listener) CloseAfterBacklog() {
	if !l.closing.CompareAndSwap(0, time.Now().UnixNano()) {
		return
	}
	d, is := l.Listener.(interface{ SetDeadline(time.Time) error })
	if !is || d.SetDeadline(time.Now()) != nil { // which wakes Accept
		l.Close()
	}
}

// If a connection is closed before all was read that its client has sent, it is
// reset, and the client may lose its answer. So a refused connection stays open until
// the client closes it, for lingering at most, unless maxLeaving are open already.
const (
	maxLeaving = 64
	lingering  = 500 * time.Millisecond
)

// refuse sends why to c and closes it, in the background.
func (l *Limit) refuse(c net.Conn, why []byte) {
	if len(why) == 0 {
		c.Close()
		return
	}
	c.SetDeadline(time.Now().Add(lingering))
	c.Write(why) // there is room, as nothing was sent; fails if the client is gone
	half, ok := c.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		c.Close()
		return
	}
	select {
	case l.leaving <- struct{}{}:
		go func() {
			defer func() { <-l.leaving }()
			defer c.Close()
			io.Copy(io.Discard, c) // until the deadline
		}()
	default:
		c.Close()
	}
}
