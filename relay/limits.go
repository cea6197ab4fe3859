package relay

import (
	"log/slog"
	"net/netip"
	"sync"
	"time"
)

// sources counts the connections of each client address. It is safe for concurrent use.
type sources struct {
	mu    sync.Mutex
	count map[netip.Addr]int // guarded by mu
}

// source returns the address that connections from a are counted under: a itself, or
// its /64. It is invalid for a client without an address.
func source(a netip.Addr) netip.Addr {
	if a = a.Unmap(); !a.Is6() {
		return a
	}
	p, _ := a.WithZone("").Prefix(64) // the length fits
	return p.Addr()
}

// acquire counts one more connection, unless a has most already.
func (s *sources) acquire(a netip.Addr, most int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count[a] >= most {
		return false
	}
	s.count[a]++
	return true
}

func (s *sources) release(a netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count[a]--; s.count[a] == 0 {
		delete(s.count, a)
	}
}

// spareDescriptors are reserved for files other than connections and pipes.
const spareDescriptors = 64

// fitDescriptors sets the defaults of maxPipes and MaxConns by the process's limit on
// descriptors (negative: no limit), and logs what does not fit. A connection and a pipe
// have two descriptors each.
func (o *Options) fitDescriptors(limit int) {
	if limit < 0 {
		defaultTo(&o.maxPipes, 128)
		defaultTo(&o.MaxConns, -1)
		return
	}
	defaultTo(&o.maxPipes, min(max(limit/300, 4), 128))
	allowed := max((limit-2*o.maxPipes-spareDescriptors)/2, 1)
	raise := slog.String("raise_it_by", "ulimit -n, or LimitNOFILE of systemd")
	switch {
	case o.MaxConns > allowed:
		o.Log.Warn("MaxConns is more than the limit on descriptors allows", slog.Int("max_conns", o.MaxConns), slog.Int("allowed", allowed),
			slog.Int("descriptors", limit), slog.Int("descriptors_needed", 2*(o.MaxConns+o.maxPipes)+spareDescriptors), raise)
	case o.MaxConns == 0 && allowed < fewAllowed:
		o.Log.Warn("the limit on descriptors allows few connections", slog.Int("max_conns", allowed), slog.Int("descriptors", limit), raise)
	}
	defaultTo(&o.MaxConns, allowed)
}

// fewAllowed is the number of connections below which a limit on descriptors is
// probably unintended.
const fewAllowed = 1000

// enforceTimeouts ends idle and stalled connections and closes spare pipes, until the relay
// stops.
func (r *Relay) enforceTimeouts() {
	trimmed := time.Now()
	r.every(r.checkInterval(), func() {
		now := time.Now()
		if limit := r.options.IdleTimeout; limit > 0 {
			r.endIdle(now, limit)
		}
		if limit := r.options.StallTimeout; limit > 0 {
			r.endStalled(now, limit)
		}
		if now.Sub(trimmed) >= trimEvery {
			trimmed = now
			r.pipes.trim()
		}
	})
}

// trimEvery is the interval at which unused pipes are closed.
const trimEvery = 5 * time.Second

// checkInterval is the interval of enforceTimeouts, by which a connection may exceed
// its timeout.
func (r *Relay) checkInterval() time.Duration {
	every := trimEvery
	for _, limit := range []time.Duration{r.options.IdleTimeout, r.options.StallTimeout} {
		if limit > 0 {
			every = min(max(limit/8, 5*time.Millisecond), every)
		}
	}
	return every
}

// endIdle ends connections on which no byte has moved for limit: in order, and by a
// reset after another options.grace.
func (r *Relay) endIdle(now time.Time, limit time.Duration) {
	for _, c := range r.snapshot() {
		if n := c.up.bytes.Load() + c.down.bytes.Load(); n != c.idle.bytes {
			c.idle.bytes, c.idle.since = n, now
			continue
		}
		switch quiet := now.Sub(c.idle.since); {
		case quiet >= limit+r.options.grace:
			if c.reason.Load() == 0 { // otherwise abort closes it, and waits only while the peer acknowledges bytes
				c.kill(ReasonIdle, true)
			}
		case quiet >= limit:
			c.stop(ReasonIdle)
		}
	}
}

// stallState is what hasStalled has observed of a direction.
type stallState struct {
	bytes, taken uint64    // written to the destination; of these, taken by the peer
	since        time.Time // of the look that last found progress, or nothing that waits
}

// endStalled resets connections with a side that has accepted nothing for limit while
// bytes wait for it, in the relay or in its socket.
func (r *Relay) endStalled(now time.Time, limit time.Duration) {
	for _, c := range r.snapshot() {
		for _, p := range []*pump{&c.up, &c.down} {
			if c.reason.Load() != 0 || !p.hasStalled(now, limit) {
				continue
			}
			reason, who := ReasonUpstreamStalled, "an upstream"
			if p == &c.down {
				reason, who = ReasonClientStalled, "a client"
			}
			c.kill(reason, true)
			r.limited.log(slog.LevelWarn, who+" takes nothing of what waits for it, and its connection is reset",
				slog.String("client", c.client.name()), slog.String("upstream", c.upstream.name()), slog.Duration("stall_timeout", limit))
		}
	}
}

// hasStalled reports whether the destination has accepted none of the bytes that wait
// for it for limit.
func (p *pump) hasStalled(now time.Time, limit time.Duration) bool {
	m := &p.wait.stall
	bytes, waits := p.bytes.Load(), p.wait.on.Load()
	if !waits && bytes == m.bytes && m.taken == bytes {
		m.since = now // nothing has moved since the last look, and all had been taken then
		return false
	}
	unsent := uint64(p.dst.unsent())
	taken := bytes - unsent // inexact with TLS, but it changes when the peer acknowledges something
	if m.since.IsZero() || m.taken != taken || !waits && unsent == 0 {
		m.bytes, m.taken, m.since = bytes, taken, now
		return false
	}
	m.bytes = bytes
	return now.Sub(m.since) >= limit
}
