package admission

import (
	"context"
	"errors"
	"net"
	"net/http"
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
// arrived, or else whose peer has not read an answer for the longest time. It is safe for
// concurrent use.
type Limit struct {
	// Evicted is told of a connection that loses its place while it is used, and why. It is set
	// before the Limit is used; nil: nobody is told.
	Evicted func(peer net.Addr, why string)

	controller *Controller
	most       int
	reserve    int // connections beyond most that are let in to be told so

	mu      sync.Mutex
	open    int                                // guarded by mu
	of      map[*Principal]map[*Conn]struct{}  // guarded by mu; open, by who pays
	over    []*Conn                            // guarded by mu; beyond most, the oldest first
	stats   struct{ accepted, refused uint64 } // guarded by mu
	evicted [evictions]uint64                  // guarded by mu
	leaving chan struct{}                      // a token for each refused connection that is still open
	none    chan struct{}                      // wakes AwaitNone
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
	Evicted  [evictions]uint64 // that were closed to let another principal in, by Eviction
}

// An Eviction is why a connection was the one to lose its place.
type Eviction uint8

// The reasons.
const (
	Idle     Eviction = iota // between requests
	Arriving                 // its request had not arrived
	Unread                   // its peer did not read the answer
	evictions
)

var lost = [evictions]string{
	Arriving: "another client got the place of this connection, as its request had not arrived",
	Unread:   "another client got the place of this connection, as its answer was not read",
}

// unreadAfter is how long a peer may take to read something until its connection can lose its
// place: who reads is never that slow while others connect and disconnect.
const unreadAfter = 100 * time.Millisecond

// Stats returns a snapshot.
func (l *Limit) Stats() LimitStats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return LimitStats{Most: l.most, Open: l.open, Accepted: l.stats.accepted, Refused: l.stats.refused, Evicted: l.evicted}
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
	var why Eviction
	if l.open >= l.most {
		loser, why = l.loserLocked(c.addr)
	}
	evicted := loser != nil
	switch {
	case evicted:
		l.removeLocked(loser)
		l.evicted[why]++
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
	if evicted && why != Idle && l.Evicted != nil {
		l.Evicted(loser.RemoteAddr(), lost[why])
	}
	if loser != nil {
		loser.Conn.Close() // the goroutine that reads from it then closes it
	}
	return true
}

// loserLocked returns the connection that makes room for one of p, and why; nil: none does.
// It is one of the principal with the most, by weight: one that is idle, or else one on which
// a request has not arrived, or else that whose peer has not read for the longest time.
func (l *Limit) loserLocked(p *Principal) (*Conn, Eviction) {
	var largest *Principal
	for q := range l.of {
		if largest == nil || len(l.of[q])*int(largest.weight.Load()) > len(l.of[largest])*int(q.weight.Load()) {
			largest = q
		}
	}
	if (len(l.of[p])+1)*int(largest.weight.Load()) >= len(l.of[largest])*int(p.weight.Load()) {
		return nil, 0
	}
	var slow, unread *Conn
	longest := time.Now().Add(-unreadAfter).UnixNano()
	for c := range l.of[largest] {
		active, since := c.active.Load(), c.unreadSince()
		switch {
		case since > 0 && since <= longest:
			unread, longest = c, since
		case since > 0: // it may be read soon
		case active == 0:
			return c, Idle
		case c.arriving.Load() >= active:
			slow = c
		}
	}
	if slow != nil {
		return slow, Arriving
	}
	return unread, Unread
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
	peer     netip.Addr                // not mapped into IPv6
	addr     *Principal                // of it
	payer    atomic.Pointer[Principal] // who it counts for; written under limit.mu
	over     bool                      // it is beyond the limit
	gone     bool                      // it counts no more; guarded by limit.mu
	closed   bool                      // Close was called; guarded by limit.mu
	answered bool                      // it was refused, or a probe was; guarded by limit.mu

	active   atomic.Int32 // requests that are being worked on
	arriving atomic.Int32 // those of them that have not arrived
	offered  atomic.Int32 // those of them whose answer waits for the peer to read
	taken    atomic.Int64 // when the first of these was offered, or another was read since; Unix nanoseconds
	writing  atomic.Int64 // when Write was called that has not returned, likewise; 0: none was
}

func (l *Limit) newConn(c net.Conn) *Conn {
	peer := addrOf(c.RemoteAddr())
	p := l.controller.OfAddr(peer)
	p.retain() // as payer
	conn := &Conn{Conn: c, limit: l, peer: peer, addr: p}
	conn.payer.Store(p)
	return conn
}

// addrOf is the address of a peer; the zero Addr if it has none.
func addrOf(a net.Addr) netip.Addr {
	if a, ok := a.(*net.TCPAddr); ok {
		return a.AddrPort().Addr().Unmap()
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

// Offer tells that a request waits for the peer to read some of its answer, and Taken that it
// has. What waits in Write is known without them.
func (c *Conn) Offer() {
	if c.offered.Add(1) == 1 {
		c.taken.Store(time.Now().UnixNano())
	}
}

func (c *Conn) Taken() {
	c.taken.Store(time.Now().UnixNano())
	c.offered.Add(-1)
}

// Write implements net.Conn.
func (c *Conn) Write(p []byte) (int, error) {
	c.writing.Store(time.Now().UnixNano())
	defer c.writing.Store(0)
	return c.Conn.Write(p)
}

// unreadSince is since when all that is worked on waits for the peer to read, in Unix
// nanoseconds; 0: that is not so.
func (c *Conn) unreadSince() int64 {
	if at := c.writing.Load(); at > 0 {
		return at
	}
	if n := c.offered.Load(); n > 0 && n+c.arriving.Load() >= c.active.Load() {
		return c.taken.Load()
	}
	return 0
}

// Charge has the connection count for p, the sender of its last request.
func (c *Conn) Charge(p *Principal) {
	if p == c.payer.Load() {
		return
	}
	p.retain() // its caller has it, too
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
	p := c.addr
	if Network(addr) != p.id.addr || !p.retain() {
		p = c.limit.controller.OfAddr(addr)
	}
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

// PeerOf returns the address that a request comes from; the zero Addr if it has none.
func PeerOf(r *http.Request) netip.Addr {
	if c := ConnOf(r.Context()); c != nil {
		return c.peer
	}
	at, _ := netip.ParseAddrPort(r.RemoteAddr)
	return at.Addr()
}

// ConnOf returns the connection of a request; nil: it came some other way.
func ConnOf(ctx context.Context) *Conn {
	c, _ := ctx.Value(connKey{}).(*Conn)
	return c
}
