package relay

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// An upstream is one URL, whose host may have several addresses.
type upstream struct {
	address
	clientTLS *reloadedTLS // nil without TLS
	named     bool         // the host needs a lookup

	looking sync.Mutex // held during the first lookup of the host

	mu        sync.Mutex
	endpoints []*endpoint // guarded by mu; replaced, never changed
}

// An endpoint is one address of an upstream.
type endpoint struct {
	upstream *upstream
	addr     string // for net.Dial
	active   atomic.Int32
	dials    atomic.Uint64
	errors   atomic.Uint64

	mu    sync.Mutex
	fails int       // guarded by mu: failures since the last success
	until time.Time // guarded by mu: it is avoided until then
}

// A group is upstreams that share connections.
type group struct {
	upstreams []*upstream
	next      atomic.Uint64
}

// upstreams are all of them.
type upstreams struct {
	clientTLS *reloadedTLS
	all       []*upstream
	to        group
	routes    map[string]*group // by name in lower case
}

func newUpstreams(o Options, clientTLS *reloadedTLS) (*upstreams, error) {
	u := &upstreams{clientTLS: clientTLS, routes: map[string]*group{}}
	var errs []error
	u.to.upstreams = u.add(o.To, &errs)
	for name, urls := range o.Routes {
		if !validRoute(name) || len(urls) == 0 {
			errs = append(errs, fmt.Errorf("route %q: it must be a name, or *. and a name, and have an upstream", name))
		}
		u.routes[canonicalName(name)] = &group{upstreams: u.add(urls, &errs)}
	}
	return u, errors.Join(errs...)
}

// add returns the upstreams of URLs. Equal ones are one upstream.
func (u *upstreams) add(urls []string, errs *[]error) (list []*upstream) {
	for _, url := range urls {
		a, err := parseAddress(url, false)
		if err != nil {
			*errs = append(*errs, fmt.Errorf("upstream: %w", err))
			continue
		}
		i := slices.IndexFunc(u.all, func(known *upstream) bool { return known.address == a })
		if i < 0 {
			i = len(u.all)
			u.all = append(u.all, newUpstream(a, u.clientTLS))
		}
		list = append(list, u.all[i])
	}
	return list
}

func newUpstream(a address, clientTLS *reloadedTLS) *upstream {
	up := &upstream{address: a}
	if a.tls {
		up.clientTLS = clientTLS
	}
	if _, err := netip.ParseAddr(a.host); err != nil && a.network == "tcp" {
		up.named = true
	} else {
		up.endpoints = []*endpoint{{upstream: up, addr: a.dial}}
	}
	return up
}

// candidates returns the endpoints of a group in the order in which they are tried.
func (r *Relay) candidates(ctx context.Context, g *group) (list []*endpoint, err error) {
	var errs []error
	for _, up := range g.upstreams {
		endpoints, err := r.endpointsOf(ctx, up)
		if err != nil {
			errs = append(errs, err)
		}
		list = append(list, endpoints...)
	}
	if len(list) == 0 {
		return nil, errors.Join(errs...)
	}
	turn := int((g.next.Add(1) - 1) % uint64(len(list)))
	list = append(list[turn:len(list):len(list)], list[:turn]...)
	now := time.Now()
	rank := func(e *endpoint) (n int64) {
		if e.isDown(now) {
			n = math.MaxInt32
		}
		if r.options.Balance == LeastConnections {
			n += int64(e.active.Load())
		}
		return n
	}
	slices.SortStableFunc(list, func(a, b *endpoint) int { return cmp.Compare(rank(a), rank(b)) })
	return list, nil
}

// dial connects an upstream for a client: the first that can be reached. It counts the
// connection in the endpoint.
func (r *Relay) dial(ctx context.Context, g *group, client *peer) (peer, *endpoint, error) {
	list, err := r.candidates(ctx, g)
	if err != nil {
		r.counts.dialErrors.Add(1)
		return peer{}, nil, err
	}
	var errs []error
	for _, e := range list {
		e.active.Add(1)
		s, err := r.dialEndpoint(ctx, e, client)
		if err == nil {
			r.markUp(e)
			return s, e, nil
		}
		e.active.Add(-1)
		r.counts.dialErrors.Add(1)
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
		r.markDown(e, err)
	}
	return peer{}, nil, errors.Join(errs...)
}

// dialEndpoint connects, and does what comes before a client's first byte. client is nil for
// a health check.
func (r *Relay) dialEndpoint(ctx context.Context, e *endpoint, client *peer) (s peer, err error) {
	e.dials.Add(1)
	ctx, cancel := context.WithTimeout(ctx, r.options.DialTimeout)
	defer cancel()
	socket, err := new(net.Dialer).DialContext(ctx, e.upstream.network, e.addr)
	if err != nil {
		return s, err
	}
	if s, err = r.prepareUpstream(ctx, e, newPeer(socket), client); err != nil {
		socket.Close()
		return peer{}, fmt.Errorf("%s at %s: %w", e.upstream, e.addr, err)
	}
	return s, nil
}

// prepareUpstream sends the PROXY header and does the TLS handshake.
func (r *Relay) prepareUpstream(ctx context.Context, e *endpoint, s peer, client *peer) (peer, error) {
	if r.options.SendProxy != 0 {
		deadline, _ := ctx.Deadline()
		_ = s.socket.SetWriteDeadline(deadline)
		if _, err := s.socket.Write(appendProxy(nil, r.options.SendProxy, client)); err != nil {
			return s, fmt.Errorf("send PROXY header: %w", err)
		}
		_ = s.socket.SetWriteDeadline(time.Time{})
	}
	if e.upstream.clientTLS == nil {
		return s, nil
	}
	err := s.handshake(ctx, func(c net.Conn) *tls.Conn { return tls.Client(c, e.upstream.tlsConfig()) })
	return s, err
}
