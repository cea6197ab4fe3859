package admission

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollway/rollway/internal/aside"
	"github.com/rollway/rollway/internal/openfiles"
)

// A Limit bounds how many connections are open at a time, over all listeners that share
// it. When as many are open, a newcomer whose principal has fewer than that with the most
// takes the place of one of the latter that is idle, or else whose request has not
// arrived. It is safe for concurrent use.
type Limit struct {
	controller *Controller
	most       int
	reserve    int // connections beyond most that are let in to be told so

	mu      sync.Mutex
	open    int                                         // guarded by mu
	of      map[*Principal]map[*Conn]struct{}           // guarded by mu; open, by who pays
	over    []*Conn                                     // guarded by mu; beyond most, the oldest first
	stats   struct{ accepted, refused, evicted uint64 } // guarded by mu
	leaving chan struct{}                               // a token for each refused connection that is still open
	none    chan struct{}                               // wakes AwaitNone
}

// NewLimit returns a Limit of most connections. 0 means as many as the process's present
// limit on descriptors leaves room for. reserve more are let in with Conn.Over.
func (c *Controller) NewLimit(most, reserve int) *Limit {
	if most == 0 {
		most = DefaultConns(openfiles.Limit())
	}
	return &Limit{
		controller: c, most: most, reserve: reserve, of: make(map[*Principal]map[*Conn]struct{}),
		leaving: make(chan struct{}, maxLeaving), none: make(chan struct{}, 1),
	}
}

// spare descriptors are left for segments of the journal and their readers, streams
// and sinks. Below 4 × spare a quarter is left.
const spare = 1500

// unlimited is the default without a limit on descriptors.
const unlimited = 1 << 20

// DefaultConns is how many connections a limit on descriptors leaves room for. A negative
// limit means no limit.
func DefaultConns(limit int) int {
	if limit < 0 {
		return unlimited
	}
	return max(limit-min(limit/4, spare), 1)
}

// LimitStats counts the connections of a Limit.
type LimitStats struct {
	Most     int    // may be open at a time
	Open     int    // now
	Accepted uint64 // of them and those that have ended
	Refused  uint64
	Evicted  uint64 // that were closed, idle or before their request had arrived, to let another principal in
}

// Stats returns a snapshot.
func (l *Limit) Stats() LimitStats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return LimitStats{Most: l.most, Open: l.open, Accepted: l.stats.accepted, Refused: l.stats.refused, Evicted: l.stats.evicted}
}

// AwaitNone returns when no connection is open, or after timeout.
func (l *Limit) AwaitNone(timeout time.Duration) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		l.mu.Lock()
		n := l.open + len(l.over)
		l.mu.Unlock()
		if n == 0 {
			return
		}
		select {
		case <-l.none:
		case <-timer.C:
			return
		}
	}
}

// Admit returns inner as a connection that counts until it is closed, or counts it as
// refused and returns nil.
func (l *Limit) Admit(inner net.Conn) *Conn {
	c := l.newConn(inner)
	if l.admit(c) {
		return c
	}
	c.releasePayers()
	return nil
}

func (l *Limit) admit(c *Conn) bool {
	l.mu.Lock()
	var loser *Conn
	if l.open >= l.most {
		loser = l.loserLocked(c.addr)
	}
	switch {
	case loser != nil:
		l.removeLocked(loser)
		l.stats.evicted++
	case l.open >= l.most && l.reserve == 0:
		l.stats.refused++
		l.mu.Unlock()
		return false
	case l.open >= l.most:
		c.over = true
		if len(l.over) == l.reserve {
			loser = l.over[0]
			l.removeLocked(loser)
		}
	}
	l.addLocked(c)
	l.mu.Unlock()
	if loser != nil {
		loser.Conn.Close() // the goroutine that reads from it then closes it
	}
	return true
}

// loserLocked returns the connection that makes room for one of p; nil: none does. It is
// one of the principal with the most, by weight: one that is idle, or else one on which a
// request has not arrived.
func (l *Limit) loserLocked(p *Principal) *Conn {
	var largest *Principal
	for q := range l.of {
		if largest == nil || len(l.of[q])*int(largest.weight.Load()) > len(l.of[largest])*int(q.weight.Load()) {
			largest = q
		}
	}
	if (len(l.of[p])+1)*int(largest.weight.Load()) >= len(l.of[largest])*int(p.weight.Load()) {
		return nil
	}
	var slow *Conn
	for c := range l.of[largest] {
		switch active := c.active.Load(); {
		case active == 0:
			return c
		case c.arriving.Load() >= active:
			slow = c
		}
	}
	return slow
}

func (l *Limit) addLocked(c *Conn) {
	if c.over {
		l.over = append(l.over, c)
		return
	}
	l.open++
	l.stats.accepted++
	l.ownLocked(c)
}

func (l *Limit) ownLocked(c *Conn) {
	p := c.payer.Load()
	if l.of[p] == nil {
		l.of[p] = make(map[*Conn]struct{})
	}
	l.of[p][c] = struct{}{}
}

func (l *Limit) disownLocked(c *Conn) {
	p := c.payer.Load()
	if delete(l.of[p], c); len(l.of[p]) == 0 {
		delete(l.of, p)
	}
}

// removeLocked counts c no longer; it may do so again and again.
func (l *Limit) removeLocked(c *Conn) {
	if c.gone {
		return
	}
	c.gone = true
	if c.over {
		for i := range l.over {
			if l.over[i] == c {
				l.over = append(l.over[:i], l.over[i+1:]...)
				break
			}
		}
		if !c.answered {
			l.stats.refused++
		}
	} else {
		l.open--
		l.disownLocked(c)
	}
	if l.open+len(l.over) == 0 {
		aside.Signal(l.none)
	}
}

// A Conn is a connection that counts until it is closed.
type Conn struct {
	net.Conn
	limit    *Limit
	addr     *Principal                // of its peer
	payer    atomic.Pointer[Principal] // who it counts for; written under limit.mu
	over     bool                      // it is beyond the limit
	gone     bool                      // it counts no more; guarded by limit.mu
	closed   bool                      // Close was called; guarded by limit.mu
	answered bool                      // it was refused, or a probe was; guarded by limit.mu

	active   atomic.Int32 // requests that are being worked on
	arriving atomic.Int32 // those of them that have not arrived
}

func (l *Limit) newConn(c net.Conn) *Conn {
	p := l.controller.OfAddr(addrOf(c.RemoteAddr()))
	l.controller.retain(p) // as payer
	conn := &Conn{Conn: c, limit: l, addr: p}
	conn.payer.Store(p)
	return conn
}

// addrOf is the address of a peer; the zero Addr if it has none.
func addrOf(a net.Addr) netip.Addr {
	if a, ok := a.(*net.TCPAddr); ok {
		return a.AddrPort().Addr()
	}
	return netip.Addr{}
}

// Principal is that of the peer's address.
func (c *Conn) Principal() *Principal { return c.addr }

// Payer is who the connection counts for: the sender of its last request, or the peer.
func (c *Conn) Payer() *Principal { return c.payer.Load() }

// Over reports whether the connection is beyond the limit: its requests are to be
// refused, except for those of probes.
func (c *Conn) Over() bool { return c.over }

// Answer notes what comes over a connection beyond the limit: a probe, or a request that is
// refused.
func (c *Conn) Answer(probe bool) {
	c.limit.mu.Lock()
	defer c.limit.mu.Unlock()
	if !probe && !c.answered {
		c.limit.stats.refused++
	}
	c.answered = true
}

// Begin tells that a request is worked on, and End that it is over.
func (c *Conn) Begin() { c.active.Add(1) }
func (c *Conn) End()   { c.active.Add(-1) }

// Await tells that a request that is worked on waits for the peer to send the rest of it,
// and Arrived that something has come.
func (c *Conn) Await()   { c.arriving.Add(1) }
func (c *Conn) Arrived() { c.arriving.Add(-1) }

// Charge has the connection count for p, the sender of its last request.
func (c *Conn) Charge(p *Principal) {
	if p == c.payer.Load() {
		return
	}
	c.limit.controller.retain(p)
	c.limit.mu.Lock()
	before := p
	if !c.closed {
		before = c.chargeLocked(p)
	}
	c.limit.mu.Unlock()
	c.limit.controller.Release(before)
}

func (c *Conn) chargeLocked(p *Principal) (before *Principal) {
	counts := !c.gone && !c.over
	if counts {
		c.limit.disownLocked(c)
	}
	if before = c.payer.Swap(p); counts {
		c.limit.ownLocked(c)
	}
	return before
}

// Client returns the principal of a client's address, which may be another than the
// peer's if that is a proxy. The connection counts for it. The caller gives it back by
// Controller.Release.
func (c *Conn) Client(addr netip.Addr) *Principal {
	p := c.limit.controller.OfAddr(addr)
	c.Charge(p)
	return p
}

// Close implements net.Conn.
func (c *Conn) Close() error {
	c.limit.mu.Lock()
	first := !c.closed
	c.closed = true
	c.limit.removeLocked(c)
	c.limit.mu.Unlock()
	if first {
		c.releasePayers()
	}
	return c.Conn.Close()
}

func (c *Conn) releasePayers() {
	c.limit.controller.Release(c.payer.Load())
	c.limit.controller.Release(c.addr)
}

// CloseWrite closes the sending side, if the connection has one.
func (c *Conn) CloseWrite() error {
	if half, is := c.Conn.(interface{ CloseWrite() error }); is {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// connKey is where WithConn leaves a *Conn.
type connKey struct{}

// WithConn returns the context of what comes over c.
func WithConn(ctx context.Context, c *Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// ConnOf returns the connection of a request; nil: it came some other way.
func ConnOf(ctx context.Context) *Conn {
	c, _ := ctx.Value(connKey{}).(*Conn)
	return c
}
