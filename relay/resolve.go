package relay

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"time"
)

// lookup is the resolver; tests have their own.
type lookup func(ctx context.Context, host string) ([]netip.Addr, error)

func lookupSystem(ctx context.Context, host string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// endpointsOf returns the addresses of an upstream. The first call looks them up.
func (r *Relay) endpointsOf(ctx context.Context, up *upstream) ([]*endpoint, error) {
	if list := up.list(); list != nil {
		return list, nil
	}
	up.looking.Lock()
	defer up.looking.Unlock()
	if list := up.list(); list != nil {
		return list, nil
	}
	err := r.resolve(ctx, up)
	return up.list(), err
}

func (up *upstream) list() []*endpoint {
	up.mu.Lock()
	defer up.mu.Unlock()
	return up.endpoints
}

// resolve looks an upstream's name up. Addresses that remain keep their state.
// Connections to others go on. If it fails, nothing changes.
func (r *Relay) resolve(ctx context.Context, up *upstream) error {
	ctx, cancel := context.WithTimeout(ctx, r.options.DialTimeout)
	defer cancel()
	addrs, err := r.lookup(ctx, up.host)
	if err == nil && len(addrs) == 0 {
		err = fmt.Errorf("%s has no address", up.host)
	}
	if err != nil {
		return fmt.Errorf("look up %s: %w", up.host, err)
	}
	up.mu.Lock()
	defer up.mu.Unlock()
	var list []*endpoint
	for _, a := range addrs {
		addr := net.JoinHostPort(a.Unmap().String(), up.port)
		i := slices.IndexFunc(up.endpoints, func(e *endpoint) bool { return e.addr == addr })
		if i >= 0 {
			list = append(list, up.endpoints[i])
		} else {
			list = append(list, &endpoint{upstream: up, addr: addr})
		}
	}
	up.endpoints = list
	return nil
}

// resolveAll looks all names up again and again, until the relay stops.
func (r *Relay) resolveAll() {
	tick := time.NewTicker(r.options.ResolveInterval)
	defer tick.Stop()
	for {
		select {
		case <-r.stopped.Done():
			return
		case <-tick.C:
		}
		for _, up := range r.upstreams.all {
			if !up.named {
				continue
			}
			if err := r.resolve(r.stopped, up); err != nil && r.stopped.Err() == nil {
				r.limited.log(slog.LevelWarn, "an upstream's name cannot be looked up; its last addresses are used", slog.Any("error", err))
			}
		}
	}
}
