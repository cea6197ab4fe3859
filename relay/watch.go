package relay

import (
	"log/slog"
	"time"
)

// watch ends idle connections and closes spare pipes, until the relay stops.
func (r *Relay) watch() {
	tick := time.NewTicker(r.watchEvery())
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

// trimEvery is how long a pipe may be spare.
const trimEvery = 5 * time.Second

// watchEvery is how exact IdleTimeout and StallTimeout are kept.
func (r *Relay) watchEvery() time.Duration {
	every := trimEvery
	for _, limit := range []time.Duration{r.options.IdleTimeout, r.options.StallTimeout} {
		if limit > 0 {
			every = min(max(limit/8, 5*time.Millisecond), every)
		}
	}
	return every
}

// endIdle ends the connections on which no byte has moved for limit: in order,
// and after a grace in any way.
func (r *Relay) endIdle(now time.Time, limit time.Duration) {
	for _, c := range r.snapshot() {
		if n := c.bytes(); n != c.idle.bytes {
			c.idle.bytes, c.idle.since = n, now
			continue
		}
		switch quiet := now.Sub(c.idle.since); {
		case quiet >= limit+r.options.grace:
			if c.reason.Load() == 0 { // else abort waits while the peer takes something
				c.kill(ReasonIdle, true)
			}
		case quiet >= limit:
			c.stop(ReasonIdle)
		}
	}
}

// A stallMark is what a look at a direction found.
type stallMark struct {
	bytes, taken uint64 // written to the destination; of them by its peer
	since        time.Time
}

// endStalled resets the connections of which a side has taken nothing for limit
// while bytes wait for it, in the relay or in its socket.
func (r *Relay) endStalled(now time.Time, limit time.Duration) {
	for _, c := range r.snapshot() {
		for _, p := range []*pump{&c.up, &c.down} {
			if c.reason.Load() != 0 || !p.hasStalled(now, limit) {
				continue
			}
			reason, notice, who := ReasonUpstreamStalled, &r.notices.upstreamStalled, "an upstream"
			if p == &c.down {
				reason, notice, who = ReasonClientStalled, &r.notices.clientStalled, "a client"
			}
			c.kill(reason, true)
			notice.say(r.options.Log, slog.LevelWarn, who+" takes nothing of what waits for it, and its connection is reset",
				slog.String("client", c.client.name()), slog.String("upstream", c.upstream.name()), slog.Duration("stall_timeout", limit))
		}
	}
}

// hasStalled looks at a direction.
func (p *pump) hasStalled(now time.Time, limit time.Duration) bool {
	m := &p.wait.stall
	bytes, waits := p.bytes.Load(), p.wait.on.Load()
	if !waits && bytes == m.bytes && m.taken == bytes {
		m.since = now // as at the last look, all has been taken
		return false
	}
	unsent := uint64(p.dst.unsent())
	taken := bytes - unsent // while a write is under way it is less, and changes with what is taken
	if m.since.IsZero() || m.taken != taken || !waits && unsent == 0 {
		m.bytes, m.taken, m.since = bytes, taken, now
		return false
	}
	m.bytes = bytes
	return now.Sub(m.since) >= limit
}
