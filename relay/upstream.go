package relay

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
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
	config *renewedTLS // for tls
	named  bool        // the host has to be looked up

	looking sync.Mutex // held by who looks the host up for the first time

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

// A group is the upstreams among which connections are shared out.
type group struct {
	upstreams []*upstream
	next      atomic.Uint64
}

// upstreams are all of them.
type upstreams struct {
	all    []*upstream
	to     group
	routes map[string]*group // by name in lower case
}

func newUpstreams(o Options) (*upstreams, error) {
	u := &upstreams{routes: map[string]*group{}}
	var errs []error
	u.to.upstreams = u.add(o.To, o, &errs)
	for name, urls := range o.Routes {
		if !validRoute(name) || len(urls) == 0 {
			errs = append(errs, fmt.Errorf("route %q: it must be a name, or *. and a name, and have an upstream", name))
		}
		u.routes[canonicalName(name)] = &group{upstreams: u.add(urls, o, &errs)}
	}
	return u, errors.Join(errs...)
}

// add returns the upstreams of URLs, which share what they have in common with
// those before.
func (u *upstreams) add(urls []string, o Options, errs *[]error) (list []*upstream) {
	for _, url := range urls {
		a, err := parseAddress(url, false)
		if err != nil {
			*errs = append(*errs, fmt.Errorf("upstream: %w", err))
			continue
		}
		i := slices.IndexFunc(u.all, func(known *upstream) bool { return known.address == a })
		if i < 0 {
			i = len(u.all)
			u.all = append(u.all, newUpstream(a, o))
		}
		list = append(list, u.all[i])
	}
	return list
}

func newUpstream(a address, o Options) *upstream {
	up := &upstream{address: a}
	if a.tls {
		up.config = &renewedTLS{base: clientConfig(o.ClientTLS, a.host), authorities: o.UpstreamAuthorities}
	}
	if _, err := netip.ParseAddr(a.host); err != nil && a.network == "tcp" {
		up.named = true
	} else {
		up.endpoints = []*endpoint{{upstream: up, addr: a.dial}}
	}
	return up
}

// candidates returns the endpoints of a group in the order in which they are to
// be tried: those that are well first.
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
	slices.SortStableFunc(list, func(a, b *endpoint) int {
		if x, y := a.isDown(now), b.isDown(now); x != y {
			if x {
				return 1
			}
			return -1
		}
		if r.options.Balance == LeastConnections {
			return int(a.active.Load()) - int(b.active.Load())
		}
		return 0
	})
	return list, nil
}

// dial connects an upstream for a client: the first that can be reached. The
// endpoint's count of connections includes the new one.
func (r *Relay) dial(ctx context.Context, g *group, client *side) (side, *endpoint, error) {
	list, err := r.candidates(ctx, g)
	if err != nil {
		r.counts.dialErrors.Add(1)
		return side{}, nil, err
	}
	var errs []error
	for _, e := range list {
		e.active.Add(1)
		s, err := r.dialEndpoint(ctx, e, client)
		if err == nil {
			r.wentWell(e)
			return s, e, nil
		}
		e.active.Add(-1)
		r.counts.dialErrors.Add(1)
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
		r.wentWrong(e, err)
	}
	return side{}, nil, errors.Join(errs...)
}

// dialEndpoint connects, and does what comes before a client's first byte;
// client is nil for a check of health.
func (r *Relay) dialEndpoint(ctx context.Context, e *endpoint, client *side) (s side, err error) {
	e.dials.Add(1)
	ctx, cancel := context.WithTimeout(ctx, r.options.DialTimeout)
	defer cancel()
	socket, err := new(net.Dialer).DialContext(ctx, e.upstream.network, e.addr)
	if err != nil {
		return s, err
	}
	if s, err = r.greet(ctx, e, newSide(socket), client); err != nil {
		socket.Close()
		return side{}, fmt.Errorf("%s at %s: %w", e.upstream, e.addr, err)
	}
	return s, nil
}

// greet sends the PROXY header and does the TLS handshake.
func (r *Relay) greet(ctx context.Context, e *endpoint, s side, client *side) (side, error) {
	if r.options.SendProxy != 0 {
		deadline, _ := ctx.Deadline()
		_ = s.socket.SetWriteDeadline(deadline)
		if _, err := s.socket.Write(appendProxy(nil, r.options.SendProxy, client)); err != nil {
			return s, fmt.Errorf("send PROXY header: %w", err)
		}
		_ = s.socket.SetWriteDeadline(time.Time{})
	}
	if e.upstream.config == nil {
		return s, nil
	}
	err := s.handshake(ctx, func(c net.Conn) *tls.Conn { return tls.Client(c, e.upstream.config.now()) })
	return s, err
}
