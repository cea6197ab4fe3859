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
	sharePart  = 16 // of the whole, or of what is left
	fewOpen    = 8  // connections whose send buffers the system tunes as it likes
)

// share is how much the next direction may have: wholeShare as long as half of the
// budget is free.
func (b *budget) share() int64 {
	held := b.held.Load()
	if held < b.size/2 || b.size <= 0 {
		return wholeShare
	}
	return max(min((b.size-held)/sharePart, wholeShare-1), leastShare)
}

// A wait is that of a direction for its destination.
type wait struct {
	on      atomic.Bool
	granted atomic.Int64 // of the budget, while on
	limited atomic.Int64 // what the source's receive buffer is limited to; 0: it is not
	stall   stallMark    // owned by Relay.watch
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
	if limited := w.limited.Load(); limited != 0 && limited <= share {
		return
	}
	w.limited.Store(share)
	p.src.setReceiveBuffer(int(share), true)
	p.dst.limitUnsent(mostUnsent)
}

// block notes that dst takes nothing now.
func (p *pump) block() {
	w := &p.wait
	if !w.on.CompareAndSwap(false, true) {
		return
	}
	b := &p.conn.relay.budget
	share := b.share()
	granted := min(share, max(b.size/sharePart, leastShare))
	w.granted.Store(granted)
	b.held.Add(granted)
	b.waiting.Add(1)
	if share < wholeShare {
		p.limitTo(share)
	}
}

// unblock notes that dst has taken what there was, or has failed. It is called after
// each write, so that a direction is no longer limited once there is room again.
func (p *pump) unblock() {
	w, b := &p.wait, &p.conn.relay.budget
	if w.on.CompareAndSwap(true, false) {
		b.held.Add(-w.granted.Load())
		b.waiting.Add(-1)
	}
	if w.limited.Load() != 0 && b.share() == wholeShare {
		w.limited.Store(0)
		p.src.setReceiveBuffer(wholeShare, false)
		if b.conns.Load() <= fewOpen {
			p.dst.limitUnsent(0)
		}
	}
}

// mostUnsent is how many bytes the system takes for a peer beyond those on their
// way to it, while the direction is limited. (A bulk transfer costs a quarter more
// CPU by it here.)
const mostUnsent = 128 << 10
