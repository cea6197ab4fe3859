package slab

import "time"

// While slabs fill at a steady pace, run looks for sealed ones by itself, four
// times in the time that one takes to fill, and the producer that seals a slab
// need not wake it. To wake a sleeping thread is the most that a call ever
// costs, 5 to 15 µs where the copy of a line costs 0.1; one line in 256 pays it
// otherwise.
//
// A second sealed slab wakes run at once. So a stall of the destination can find
// one more slab taken than it would; flow.away has it in the account.
const (
	// lookers is the fewest slabs of a Writer whose run looks by itself, and
	// unkept how many of them any line may take: one more or less must not
	// matter.
	lookers = 8
	unkept  = 4
	// briefest is the shortest time to fill a slab with which it does. Below, a
	// look costs as much as it saves.
	briefest = 2 * time.Millisecond
)

// pace is how fast slabs fill, as run sees it.
type pace struct {
	pushed uint64        // slabs, when run last found a new one
	at     time.Duration // when that was, as Writer.age has it
	each   time.Duration // from one slab to the next
}

// see notes how many slabs were queued until now.
func (p *pace) see(pushed uint64, now time.Duration) {
	if n := pushed - p.pushed; n > 0 {
		*p = pace{pushed: pushed, at: now, each: (now - p.at) / time.Duration(n)}
	} else {
		p.each = max(p.each, now-p.at)
	}
}

// nap is how long run may look away, or 0 if it has to be woken: slabs come too
// fast, or so seldom that the ticker seals most of them.
func (p *pace) nap(o *Options) time.Duration {
	if o.SlabCount < lookers || o.SlabCount-o.reserve()[ordinary] < unkept || p.each < briefest || p.each > o.FlushInterval*3/4 {
		return 0
	}
	return p.each / 4
}
