package relay

import (
	"log/slog"
	"sync"
	"time"
)

// Bounds on how long an endpoint is avoided after a failed connection attempt. The
// time doubles with each failure.
const (
	firstAvoidance = time.Second
	maxAvoidance   = 30 * time.Second
)

// isDown reports whether connections avoid an endpoint.
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

// checkHealth connects to each endpoint every HealthInterval, until the relay
// stops.
func (r *Relay) checkHealth() {
	tick := time.NewTicker(r.options.HealthInterval)
	defer tick.Stop()
	for {
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
		select {
		case <-r.stopped.Done():
			return
		case <-tick.C:
		}
	}
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
