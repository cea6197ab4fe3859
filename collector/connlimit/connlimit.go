// Package connlimit bounds how many connections are open at a time, over all
// listeners that share a Limit.
package connlimit

import (
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
}

// New returns a Limit of most connections; 0: what the process's limit on
// descriptors leaves room for, as it was when New was called.
func New(most int) *Limit {
	if most == 0 {
		most = Default(openfiles.Limit())
	}
	return &Limit{most: int64(most), leaving: make(chan struct{}, maxLeaving)}
}

// Descriptors that are left for what is no such connection: segments of the
// journal and their readers, streams, sinks, and connections that are being
// handed over. Below 4 × spare a quarter is left.
const spare = 1500

// unlimited is the default where there is no limit on descriptors.
const unlimited = 1 << 20

// Default is how many connections a limit on descriptors leaves room for.
// Negative: there is none.
func Default(limit int) int {
	if limit < 0 {
		return unlimited
	}
	return max(limit-min(limit/4, spare), 1)
}

// Take counts one more connection, of which Give is to tell the end; false: there
// are as many as there may be, and it is to be refused.
func (l *Limit) Take() bool {
	for n := l.open.Load(); n < l.most; n = l.open.Load() {
		if l.open.CompareAndSwap(n, n+1) {
			l.accepted.Add(1)
			return true
		}
	}
	l.refused.Add(1)
	return false
}

// Give takes Take back.
func (l *Limit) Give() { l.open.Add(-1) }

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

// Listener returns inner with connections that count until they are closed. Those
// over the limit get refusal, and are closed.
func (l *Limit) Listener(inner net.Listener, refusal []byte) net.Listener {
	return &listener{inner, l, refusal}
}

type listener struct {
	net.Listener
	limit   *Limit
	refusal []byte
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.limit.Take() {
			return &conn{Conn: c, limit: l.limit}, nil
		}
		l.limit.Refuse(c, l.refusal)
	}
}

// A connection that is closed before all was read that its client has sent is
// reset, and what it was told may be lost. So a refused one stays open until the
// client has closed it, lingering at the most, unless there are maxLeaving.
const (
	maxLeaving = 64
	lingering  = 500 * time.Millisecond
)

// Refuse tells c, which Take has not let in, why, and closes it. It does not wait
// for that.
func (l *Limit) Refuse(c net.Conn, why []byte) {
	if len(why) == 0 {
		c.Close()
		return
	}
	c.SetDeadline(time.Now().Add(lingering))
	c.Write(why) // it has room for that, as nothing was sent; who is gone needs no answer
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
	limit  *Limit
	once   sync.Once
	onRead func([]byte) error // nil: nobody looks
}

// OnRead has f look at what each Read has got, which fails if f does. It is
// called before the first one.
func (c *conn) OnRead(f func(p []byte) error) { c.onRead = f }

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.onRead != nil && n > 0 {
		if wrong := c.onRead(p[:n]); wrong != nil {
			return 0, wrong
		}
	}
	return n, err
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.once.Do(c.limit.Give)
	return c.Conn.Close()
}
