package relay

import (
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
)

// A conn joins two sides.
type conn struct {
	relay            *Relay
	client, upstream peer
	up, down         pump // client to upstream, upstream to client

	endpoint *endpoint     // of the upstream; nil after Join
	source   netip.Addr    // counted in Relay.sources, if valid
	joined   chan struct{} // closed at the end, for Join; otherwise nil

	start     time.Time
	firstByte time.Duration // from start to the first byte for the client; owned by down

	reason  atomic.Int32 // a Reason once the connection is being closed, 0 before
	broken  atomic.Int32 // the Reason why a destination fails, if one does
	stopped atomic.Int32 // the Reason why reads were made to end, 0 if they were not
	running atomic.Int32 // directions that have not returned

	idle struct { // owned by Relay.enforceTimeouts
		bytes uint64
		since time.Time
	}
}

// join describes the connection of two sides; run starts it.
func (r *Relay) join(client, upstream peer, start time.Time) *conn {
	c := &conn{relay: r, client: client, upstream: upstream, start: start}
	r.budget.conns.Add(1)
	c.up.init(c, &c.client, &c.upstream, &r.counts.bytesUp)
	c.down.init(c, &c.upstream, &c.client, &r.counts.bytesDown)
	c.running.Store(2)
	c.idle.since = start
	return c
}

// run copies both ways, each in a goroutine with a stack that nothing has made
// large yet. It returns at once.
func (c *conn) run() {
	if c.up.spliceable() {
		c.relay.counts.spliced.Add(1)
	} else {
		c.relay.counts.buffered.Add(1)
	}
	if !c.relay.add(c) {
		c.kill(ReasonDrainCut, true)
	}
	go c.up.run()
	go c.down.run()
}

// directionEnded is called by each direction as the last thing it does.
func (c *conn) directionEnded() {
	if c.running.Add(-1) == 0 {
		if c.endpoint != nil {
			c.endpoint.active.Add(-1)
		}
		if c.source.IsValid() {
			c.relay.sources.release(c.source)
		}
		c.relay.budget.conns.Add(-1)
		c.relay.counts.closed[c.reason.Load()].Add(1)
		c.relay.logAccess(c) // before remove, so that Shutdown finds the record
		c.relay.remove(c)
		if c.joined != nil {
			close(c.joined)
		}
	}
}

// finished decides what follows from the end of a direction. at is the peer that
// failed with err, or nil if the source has ended.
func (c *conn) finished(p *pump, at *peer, err error) {
	if c.reason.Load() != 0 {
		return
	}
	if at == nil || at == p.src && at.endedWhole(err) {
		p.ending.Store(true)
		// A connection is gone after both ends, and the other direction has said
		// that it sends ours before it does; so it must be asked last.
		if p.src.isDead() && !c.opposite(p).ending.Load() {
			// A reset that a write has met, and no read is told of any more.
			c.abort(c.failure(p.src, syscall.ECONNRESET), p.src)
			return
		}
		err = p.dst.closeWrite()
		// A peer that has finished, and was sent nothing, has missed nothing.
		if err == nil || c.opposite(p).ended.Load() && p.bytes.Load() == 0 {
			c.halfClosed(p)
			return
		}
		at = p.dst
	}
	reason := c.failure(at, err)
	if at == p.src {
		c.abort(reason, at)
		return
	}
	// Bytes that the failed peer sent before may still be in flight.
	c.broken.CompareAndSwap(0, int32(reason))
	if c.opposite(p).ended.Load() {
		c.abort(reason, at)
		return
	}
	at.closeRead()
}

// halfClosed: the source of p has ended, and its destination knows.
func (c *conn) halfClosed(p *pump) {
	p.ended.Store(true)
	if reason := Reason(c.broken.Load()); reason != 0 {
		c.abort(reason, p.src)
		return
	}
	if c.opposite(p).ended.Load() {
		reason := Reason(c.stopped.Load())
		if reason == 0 {
			reason = ReasonDone
		}
		c.kill(reason, false)
		return
	}
	if p.src.conn != p.src.socket {
		// TLS has said that the stream is whole. A client of TLS 1.3 that never
		// reads, not even its session tickets, ends every connection by a reset.
		return
	}
	// The source may still be reset, which the other direction would see only
	// with the next byte for it.
	if err := p.src.awaitReset(); err != nil && isReset(err) {
		c.abort(c.failure(p.src, err), p.src)
	}
}

func (c *conn) opposite(p *pump) *pump {
	if p == &c.up {
		return &c.down
	}
	return &c.up
}

// failure returns the Reason for an error of a peer.
func (c *conn) failure(at *peer, err error) Reason {
	switch client, reset := at == &c.client, isReset(err); {
	case client && reset:
		return ReasonClientReset
	case client:
		return ReasonClientError
	case reset:
		return ReasonUpstreamReset
	}
	return ReasonUpstreamError
}

// abort resets the peer opposite to gone, once the bytes sent to it have arrived.
func (c *conn) abort(reason Reason, gone *peer) {
	if !c.reason.CompareAndSwap(0, int32(reason)) {
		return
	}
	other := &c.upstream
	if gone == other {
		other = &c.client
	}
	other.flush(flushStall)
	other.close(true)
	gone.close(true)
}

// flushStall is how long abort waits for a peer that acknowledges nothing.
const flushStall = 5 * time.Second

// kill closes both sides, which makes the directions return. With reset it also
// ends abort's wait.
func (c *conn) kill(reason Reason, reset bool) {
	if c.reason.CompareAndSwap(0, int32(reason)) || reset && c.aborted() {
		c.upstream.close(reset)
		c.client.close(reset)
	}
}

// aborted reports whether it was abort that set the reason.
func (c *conn) aborted() bool {
	failures := []Reason{ReasonClientReset, ReasonUpstreamReset, ReasonClientError, ReasonUpstreamError}
	return slices.Contains(failures, Reason(c.reason.Load()))
}

// stop makes both directions end as if their sources had, once they have passed
// on what they hold.
func (c *conn) stop(reason Reason) {
	c.stopped.CompareAndSwap(0, int32(reason))
	past := time.Unix(1, 0)
	_ = c.client.socket.SetReadDeadline(past)
	_ = c.upstream.socket.SetReadDeadline(past)
}

// Join copies between two connections as Serve does between a client and an
// upstream, and returns when both are closed. Either may be a socket, a
// *tls.Conn or any other net.Conn. The error is nil if both sides ended in
// order, a [Reason] if they did not; it wraps net.ErrClosed after Shutdown.
func (r *Relay) Join(client, upstream net.Conn) error {
	if r.beginSetup(0) != 0 {
		client.Close()
		upstream.Close()
		return errClosed
	}
	r.counts.accepted.Add(1)
	c := r.join(newPeer(client), newPeer(upstream), time.Now())
	c.joined = make(chan struct{})
	c.run()
	<-c.joined
	if reason := Reason(c.reason.Load()); reason != ReasonDone {
		return reason
	}
	return nil
}
