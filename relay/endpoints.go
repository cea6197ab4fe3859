package relay

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"
)

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

// resolveAll looks all names up again.
func (r *Relay) resolveAll() {
	for _, up := range r.upstreams.all {
		if !up.named {
			continue
		}
		if err := r.resolve(r.stopped, up); err != nil && r.stopped.Err() == nil {
			r.limited.log(slog.LevelWarn, "an upstream's name cannot be looked up; its last addresses are used", slog.Any("error", err))
		}
	}
}

// Bounds on how long an endpoint is avoided after a failed attempt, doubled each time.
const (
	firstAvoidance = time.Second
	maxAvoidance   = 30 * time.Second
)

// isDown reports whether an endpoint is avoided.
func (e *endpoint) isDown(now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return now.Before(e.until)
}

func (r *Relay) markUp(e *endpoint) {
	e.mu.Lock()
	fails := e.fails
	e.fails, e.until = 0, time.Time{}
	e.mu.Unlock()
	if fails > 0 {
		r.options.Log.Info("an upstream is back", slog.String("upstream", e.upstream.String()), slog.String("address", e.addr))
	}
}

func (r *Relay) markDown(e *endpoint, err error) {
	e.errors.Add(1)
	e.mu.Lock()
	avoid := min(firstAvoidance<<min(e.fails, 10), maxAvoidance)
	// With health checks on, a check ends this.
	avoid = max(avoid, 2*r.options.HealthInterval)
	e.fails++
	fails := e.fails
	e.until = time.Now().Add(avoid)
	e.mu.Unlock()
	if fails == 1 {
		r.options.Log.Warn("an upstream cannot be reached and is avoided", slog.String("upstream", e.upstream.String()), slog.String("address", e.addr), slog.Any("error", err))
	}
}

// checkHealth connects to each endpoint.
func (r *Relay) checkHealth() {
	var checks sync.WaitGroup
	for _, up := range r.upstreams.all {
		list, err := r.endpointsOf(r.stopped, up)
		if err != nil && r.stopped.Err() == nil {
			r.limited.log(slog.LevelWarn, "an upstream's name cannot be looked up", slog.Any("error", err))
		}
		for _, e := range list {
			checks.Go(func() { r.check(e) })
		}
	}
	checks.Wait()
}

func (r *Relay) check(e *endpoint) {
	s, err := r.dialEndpoint(r.stopped, e, nil)
	if err == nil {
		if s.conn != s.socket {
			_ = s.conn.Close()
		}
		s.close(false)
		r.markUp(e)
	} else if r.stopped.Err() == nil {
		r.markDown(e, err)
	}
}
