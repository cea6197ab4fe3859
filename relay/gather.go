package relay

import (
	"runtime"
	"time"
)

// A gathering is what a direction knows of the small pieces that come. Each read,
// each write and each wake-up has a price however little it moves. So while small
// pieces come one after the other, and nothing goes the other way (where somebody
// may wait for an answer), the direction lets them gather for gatherFor before it
// reads, and the system wakes nobody for each of them.
type gathering struct {
	back   uint64    // bytes of the other direction
	small  int       // rounds that moved little, since
	since  time.Time // when the first of them ended
	on     bool
	low    bool // the socket's low-water mark is gatherLow
	waited bool // the last read found nothing at first
	waits  int  // such reads in a row
}

const (
	gatherFor    = 100 * time.Microsecond
	gatherBelow  = 16 << 10 // a round that moves more needs no company
	gatherLow    = 32 << 10 // bytes that wake a reader sooner
	gatherRounds = 8        // small ones, each within 2 × gatherFor, begin it; as many that wait end it
)

// canGather reports whether the relay knows when it waits for the source.
func (p *pump) canGather() bool { return canWait && (p.src.wire != nil || p.src.plain()) }

// gather is called after a round of n bytes, and sleeps if that is due.
func (p *pump) gather(n int) {
	g := &p.gathering
	if g.waited {
		g.waits++
	} else {
		g.waits = 0
	}
	g.waited = false
	back := p.conn.opposite(p).bytes.Load()
	switch {
	case back != g.back, g.on && g.waits > gatherRounds:
		*g = gathering{back: back, low: g.low}
		p.lowWater(false)
		return
	case n >= gatherBelow:
		return
	case !g.on:
		if g.small++; g.small == 1 {
			g.since = time.Now()
		} else if g.small > gatherRounds {
			g.on, g.small = time.Since(g.since) < 2*gatherRounds*gatherFor, 0
		}
		return
	}
	// It takes a thread to sleep, as the runtime's timers are not that exact; so
	// few may. The other directions go on without.
	sleeping := &p.conn.relay.sleeping
	if sleeping.Add(1) <= int32(max(1, runtime.GOMAXPROCS(0)/2)) {
		p.lowWater(true)
		sleepShortly(gatherFor)
	}
	sleeping.Add(-1)
}

// mustWait notes that the read has found nothing; false: it may find something
// now, as what is below the low-water mark did not wake anybody.
func (p *pump) mustWait() bool {
	p.gathering.waited = true
	if p.gathering.low {
		p.lowWater(false)
		return false
	}
	return true
}

// lowWater sets how many bytes have to come before the system wakes a reader.
func (p *pump) lowWater(high bool) {
	if p.gathering.low != high {
		p.gathering.low = high
		p.src.setLowWater(map[bool]int{true: gatherLow, false: 1}[high])
	}
}
