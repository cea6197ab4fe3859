// Package connlimit bounds how many connections are open at a time, over all
// listeners that share a Limit.
package connlimit

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollway/rollway/internal/openfiles"
)

// A Limit counts connections. Its methods are safe for concurrent use.
type Limit struct {
	most              int64
	open              atomic.Int64
	accepted, refused atomic.Uint64
	leaving           chan struct{} // a token for each refused connection that is still open
	none              chan struct{} // wakes AwaitNone
}

// New returns a Limit of most connections. 0 means as many as the process's present
// limit on descriptors leaves room for.
func New(most int) *Limit {
	if most == 0 {
		most = Default(openfiles.Limit())
	}
	return &Limit{most: int64(most), leaving: make(chan struct{}, maxLeaving), none: make(chan struct{}, 1)}
}

// spare descriptors are left for segments of the journal and their readers, streams
// and sinks. Below 4 × spare a quarter is left.
const spare = 1500

// unlimited is the default without a limit on descriptors.
const unlimited = 1 << 20

// Default is how many connections a limit on descriptors leaves room for. A negative
// limit means no limit.
func Default(limit int) int {
	if limit < 0 {
		return unlimited
	}
	return max(limit-min(limit/4, spare), 1)
}

// Acquire counts one more connection, whose end Release tells. It returns false if
// as many are open as there may be.
func (l *Limit) Acquire() bool {
	for n := l.open.Load(); n < l.most; n = l.open.Load() {
		if l.open.CompareAndSwap(n, n+1) {
			l.accepted.Add(1)
			return true
		}
	}
	l.refused.Add(1)
	return false
}

// Release counts one connection less.
func (l *Limit) Release() {
	if l.open.Add(-1) == 0 {
		select {
		case l.none <- struct{}{}:
		default:
		}
	}
}

// AwaitNone returns when no connection is open, or after timeout.
func (l *Limit) AwaitNone(timeout time.Duration) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for l.open.Load() > 0 {
		select {
		case <-l.none:
		case <-timer.C:
			return
		}
	}
}

// Stats counts since New.
type Stats struct {
	Most     int    // may be open at a time
	Open     int    // now
	Accepted uint64 // of them and those that have ended
	Refused  uint64
}

// Stats returns a snapshot.
func (l *Limit) Stats() Stats {
	return Stats{Most: int(l.most), Open: int(l.open.Load()), Accepted: l.accepted.Load(), Refused: l.refused.Load()}
}

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
		switch {
		case err != nil:
			return nil, err
		case l.limit.Acquire():
			return &conn{Conn: c, limit: l.limit}, nil
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

type conn struct {
	net.Conn
	limit *Limit
	once  sync.Once
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.once.Do(c.limit.Release)
	return c.Conn.Close()
}

// CloseWrite closes the sending side, if the connection has one.
func (c *conn) CloseWrite() error {
	if half, is := c.Conn.(interface{ CloseWrite() error }); is {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
