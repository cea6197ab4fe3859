package relay

import (
	"log/slog"
	"time"
)

// enforceTimeouts ends idle and stalled connections and closes spare pipes, until the relay
// stops.
func (r *Relay) enforceTimeouts() {
	tick := time.NewTicker(r.checkInterval())
	defer tick.Stop()
	trimmed := time.Now()
	for {
		select {
		case <-r.stopped.Done():
			return
		case now := <-tick.C:
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
		}
	}
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
		if n := c.bytes(); n != c.idle.bytes {
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
