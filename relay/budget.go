package relay

import "sync/atomic"

// A budget bounds what the system holds for directions that wait for their
// destination: in the source's receive buffer, which fills meanwhile, and in the
// destination's send buffer. Each takes a part of what is left, so that the first
// ones have all that the system would give them, and many have little each. A
// connection that comes while there is little begins with that; one that comes
// while many are open has its send buffers bounded, as many may begin to wait
// before the first ones are counted. Safe for concurrent use.
type budget struct {
	size int64 // ≤ 0: no bound
	held atomic.Int64

	waiting atomic.Int64 // directions
	conns   atomic.Int64 // open
}

const (
	wholeShare = 4 << 20 // of a direction; from here on the system tunes its buffers as it likes
	leastShare = 128 << 10
	sharePart  = 16 // of what is left
	fewOpen    = 8  // connections whose send buffers the system tunes as it likes
)

// share is how much the next direction may have.
func (b *budget) share() int64 {
	if b.size <= 0 {
		return wholeShare
	}
	return max(min((b.size-b.held.Load())/sharePart, wholeShare), leastShare)
}

// A wait is that of a direction for its destination.
type wait struct {
	on      atomic.Bool
	granted int64     // of the budget, while on
	limited int64     // what the source's receive buffer is limited to; 0: it is not
	before  int       // the receive buffer before that
	stall   stallMark // owned by Relay.watch
}

// limit begins a direction.
func (p *pump) limit() {
	b := &p.conn.relay.budget
	if share := b.share(); share < wholeShare {
		p.limitTo(share)
	} else if b.size > 0 && b.conns.Load() > fewOpen {
		p.dst.limitUnsent(mostUnsent)
	}
}

func (p *pump) limitTo(share int64) {
	w := &p.wait
	if w.limited != 0 && w.limited <= share {
		return
	}
	if w.limited == 0 {
		w.before = p.src.receiveBuffer()
	}
	w.limited = share
	p.src.setReceiveBuffer(int(share), true)
	p.dst.limitUnsent(mostUnsent)
}

// block notes that dst takes nothing now.
func (p *pump) block() {
	w := &p.wait
	if w.on.Load() {
		return
	}
	w.on.Store(true)
	b := &p.conn.relay.budget
	w.granted = b.share()
	b.held.Add(w.granted)
	b.waiting.Add(1)
	if w.granted < wholeShare {
		p.limitTo(w.granted)
	}
}

// unblock notes that dst has taken what there was, or has failed.
func (p *pump) unblock() {
	w := &p.wait
	if !w.on.Load() {
		return
	}
	w.on.Store(false)
	b := &p.conn.relay.budget
	b.held.Add(-w.granted)
	b.waiting.Add(-1)
	if w.limited != 0 && b.share() == wholeShare {
		w.limited = 0
		p.src.setReceiveBuffer(w.before, false)
		p.dst.limitUnsent(0)
	}
}

// mostUnsent is how many bytes the system takes for a peer beyond those on their
// way to it, while the direction is limited. (A bulk transfer costs a quarter more
// CPU by it here.)
const mostUnsent = 128 << 10
