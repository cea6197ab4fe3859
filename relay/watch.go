package relay

import "time"

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
			if now.Sub(trimmed) >= trimEvery {
				trimmed = now
				r.pipes.trim()
			}
		}
	}
}

// trimEvery is how long a pipe may be spare.
const trimEvery = 5 * time.Second

// watchEvery is how exact IdleTimeout is kept.
func (r *Relay) watchEvery() time.Duration {
	if r.options.IdleTimeout < 0 {
		return trimEvery
	}
	return min(max(r.options.IdleTimeout/8, 5*time.Millisecond), trimEvery)
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
