// Package admission shares what a collector has among those who use it: connections,
// memory, slots of queries, and processors. A [Principal] is who pays: a tenant, a token
// without one, or the address of a client.
//
// What can be given out once is a [Resource]. Its rule is the dynamic threshold of
// switches (Choudhury and Hahne, 1998): no principal may hold more than twice what is
// left free, times its weight. One alone gets two thirds, each of n gets 2/(2n+1), and
// something is always left for the next. Nobody needs to be counted for that.
//
// Processors are shared in turns, see [CPU].
package admission

import (
	"context"
	"net/netip"
	"sync"
	"sync/atomic"
)

// Kind is a kind of Resource. A Controller has one of each.
type Kind uint8

// The kinds of resources.
const (
	Memory  Kind = iota // bytes of requests and connections
	Streams             // of them, those of connections that are not HTTP
	Headers             // of them, those of headers of HTTP
	Queries
	Tails
	QueryMemory // bytes that queries hold
	kinds
)

// A Controller knows the principals. It is safe for concurrent use.
type Controller struct {
	CPU       *CPU
	resources [kinds]Resource

	mu         sync.Mutex
	principals map[identity]*Principal // guarded by mu
}

// New returns a Controller whose resources have no limit yet.
func New() *Controller {
	c := &Controller{CPU: newCPU(), principals: make(map[identity]*Principal)}
	for k := range c.resources {
		c.resources[k].kind = Kind(k)
	}
	return c
}

// identity is what a Principal is known by: a name or an address.
type identity struct {
	name string
	addr netip.Addr
}

// A Principal is who pays for what is used.
type Principal struct {
	id     identity
	weight atomic.Int64 // of its shares; 1 or more
	used   [kinds]atomic.Int64
	refs   atomic.Int64 // from 0 to 1 under Controller.mu; what is named has one for ever

	turns turns
}

// String names the principal for people: the tenant, a dot and the token, or the address.
func (p *Principal) String() string {
	if p.id.name != "" {
		return p.id.name
	}
	return p.id.addr.String()
}

// Named returns the principal of a tenant or token, whose weight is set to weight.
func (c *Controller) Named(name string, weight int) *Principal {
	p := c.OfName(name)
	p.weight.Store(int64(max(weight, 1)))
	return p
}

// OfName is Named for who has a weight already, or the least.
func (c *Controller) OfName(name string) *Principal {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.findLocked(identity{name: name})
	p.refs.CompareAndSwap(0, 1)
	return p
}

// OfAddr returns the principal of a client's address, or of the /64 of an IPv6 address.
// The caller gives it back by Release.
func (c *Controller) OfAddr(addr netip.Addr) *Principal {
	addr = Network(addr)
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.findLocked(identity{addr: addr})
	p.refs.Add(1)
	return p
}

// Network returns addr, or the address of its /64: one client may have all of those.
func Network(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if addr.Is6() {
		addr = netip.PrefixFrom(addr, 64).Masked().Addr()
	}
	return addr
}

// retain begins one more use of p, unless the last one has ended.
func (p *Principal) retain() bool {
	for {
		switch n := p.refs.Load(); {
		case n == 0:
			return false
		case p.refs.CompareAndSwap(n, n+1):
			return true
		}
	}
}

// Release ends the use of a principal that OfAddr or Conn.Client has returned.
func (c *Controller) Release(p *Principal) {
	if p.refs.Add(-1) > 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.refs.Load() == 0 && c.principals[p.id] == p {
		delete(c.principals, p.id)
	}
}

func (c *Controller) findLocked(id identity) *Principal {
	p := c.principals[id]
	if p == nil {
		p = &Principal{id: id}
		p.weight.Store(1)
		p.turns.at = -1
		c.principals[id] = p
	}
	return p
}

// Resource returns the resource of a kind.
func (c *Controller) Resource(k Kind) *Resource { return &c.resources[k] }

// A Resource is a number of something, such as bytes, that principals share. It is safe for concurrent
// use once its limit is set.
type Resource struct {
	kind  Kind
	limit int64
	used  atomic.Int64
}

// SetLimit sets how much may be used at a time. It comes before any use.
func (r *Resource) SetLimit(n int64) { r.limit = n }

// Limit returns how much may be used at a time.
func (r *Resource) Limit() int64 { return r.limit }

// Used returns how much is used.
func (r *Resource) Used() int64 { return r.used.Load() }

// Acquire takes n for p. It takes nothing and returns false if there are not as many, or
// if p would have more than its share.
func (r *Resource) Acquire(p *Principal, n int64) bool {
	mine := p.used[r.kind].Add(n)
	for {
		used := r.used.Load() // without n: others are not to find less than there is
		free := r.limit - used - n
		if free < 0 || mine > 2*free*p.weight.Load() && mine != n { // who has nothing may take what there is
			p.used[r.kind].Add(-n)
			return false
		}
		if r.used.CompareAndSwap(used, used+n) {
			return true
		}
	}
}

// Take takes n for p, whether there is as much or not.
func (r *Resource) Take(p *Principal, n int64) {
	p.used[r.kind].Add(n)
	r.used.Add(n)
}

// Release gives back n that p has taken.
func (r *Resource) Release(p *Principal, n int64) {
	p.used[r.kind].Add(-n)
	r.used.Add(-n)
}

// Most returns how much p gets if nobody else uses any.
func (r *Resource) Most(p *Principal) int64 {
	w := 2 * p.weight.Load()
	return int64(float64(r.limit) * float64(w) / float64(w+1))
}

// Of returns how much p uses.
func (r *Resource) Of(p *Principal) int64 { return p.used[r.kind].Load() }

// AcquirePart takes n bytes of Memory and of a part of it.
func (c *Controller) AcquirePart(part Kind, p *Principal, n int64) bool {
	if !c.resources[part].Acquire(p, n) {
		return false
	}
	if !c.resources[Memory].Acquire(p, n) {
		c.resources[part].Release(p, n)
		return false
	}
	return true
}

// ReleasePart gives back what AcquirePart has taken.
func (c *Controller) ReleasePart(part Kind, p *Principal, n int64) {
	c.resources[part].Release(p, n)
	c.resources[Memory].Release(p, n)
}

// principalKey is where WithPrincipal leaves a *Principal.
type principalKey struct{}

// WithPrincipal returns a context of a request by p.
func WithPrincipal(ctx context.Context, p *Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// FromContext returns the principal of a request: who was named by WithPrincipal, or else
// the client of the connection.
func FromContext(ctx context.Context) *Principal {
	if p, ok := ctx.Value(principalKey{}).(*Principal); ok {
		return p
	}
	if c := ConnOf(ctx); c != nil {
		return c.addr
	}
	return nil
}
