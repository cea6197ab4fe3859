package relay

import (
	"runtime"
	"time"
)

// coalescing decides whether a direction lets small pieces accumulate in the socket before
// it reads them, as each read, write and wake-up has a fixed cost. While small pieces
// arrive in close succession and nothing goes the other way, where a client may wait for
// an answer, the direction sleeps for coalesceFor before it reads. Meanwhile the system
// does not wake the runtime for each piece.
type coalescing struct {
	back   uint64    // bytes of the other direction, after the last round
	small  int       // small rounds counted so far, while not on
	since  time.Time // when the first of them ended
	on     bool
	low    bool // the socket's low-water mark is coalesceLowWater
	waited bool // the last read found nothing at first
	waits  int  // such reads in a row
}

const (
	coalesceFor      = 100 * time.Microsecond
	smallRound       = 16 << 10 // a round that moves less is small
	coalesceLowWater = 32 << 10 // the low-water mark meanwhile

	// More small rounds than these begin it, if they take less than 2 × coalesceFor
	// each on average. More reads in a row that found nothing at first end it.
	coalesceRounds = 8
)

// canCoalesce reports whether the relay itself waits at the source's socket, and so
// knows which reads found nothing at first.
func (p *pump) canCoalesce() bool { return canWait && (p.src.tlsSocket != nil || p.src.plain()) }

// coalesce is called after a round of n bytes, and sleeps if that is due. full says
// that they filled the buffer, so that more may be there already.
func (p *pump) coalesce(n int, full bool) {
	g := &p.coalescing
	if g.waits++; !g.waited {
		g.waits = 0
	}
	g.waited = false
	back := p.conn.opposite(p).bytes.Load()
	switch {
	case back != g.back, g.on && g.waits > coalesceRounds:
		*g = coalescing{back: back, low: g.low}
		p.lowWater(false)
		return
	case n >= smallRound, full:
		return
	case !g.on:
		if g.small++; g.small == 1 {
			g.since = time.Now()
		} else if g.small > coalesceRounds {
			g.on, g.small = time.Since(g.since) < 2*coalesceRounds*p.conn.relay.options.coalesceFor, 0
		}
		return
	}
	// The runtime's timers are too coarse for coalesceFor, so this sleep is a system
	// call, which blocks one of the runtime's GOMAXPROCS processors for a while. So half
	// as many may sleep at a time, or one.
	sleeping := &p.conn.relay.sleeping
	if sleeping.Add(1) <= int32(max(1, runtime.GOMAXPROCS(0)/2)) {
		p.lowWater(true)
		sleepShortly(p.conn.relay.options.coalesceFor)
	}
	sleeping.Add(-1)
}

// shouldWait notes that a read has found nothing, and reports whether to wait. If the
// low-water mark is high, shouldWait lowers it and returns false: read again, as
// pieces that came below the mark have woken nobody.
func (p *pump) shouldWait() bool {
	p.coalescing.waited = true
	if p.coalescing.low {
		p.lowWater(false)
		return false
	}
	return true
}

// lowWater sets how many bytes make the source readable: coalesceLowWater if high, else 1.
func (p *pump) lowWater(high bool) {
	if p.coalescing.low == high {
		return
	}
	p.coalescing.low = high
	mark := 1
	if high {
		mark = coalesceLowWater
	}
	p.src.setLowWater(mark)
}
