package slab

import "time"

// While slabs fill at a steady pace, run polls the queue, four times in the time that
// one slab takes to fill, and the producer that seals a slab need not wake it. Waking a
// sleeping thread costs a producer 5 to 15 µs, where the copy of a line costs 0.1; with
// slabs of 256 lines one line in 256 would pay it.
//
// A second sealed slab wakes run at once. So a stall of the destination may find one
// more slab in use than without polling.
const (
	// run polls if the Writer has minPollSlabs slabs or more, minPollOrdinary of them
	// not reserved: then one slab more or less does not matter.
	minPollSlabs    = 8
	minPollOrdinary = 4
	// minPollPace is the shortest time to fill a slab at which run polls. Below it, a
	// poll costs as much as it saves.
	minPollPace = 2 * time.Millisecond
)

// pace is how fast slabs fill, as observed by run.
type pace struct {
	pushed uint64        // slabs, when run last found a new one
	at     time.Duration // when that was, as an age of the Writer
	each   time.Duration // from one slab to the next
}

// see notes how many slabs have been queued since New.
func (p *pace) see(pushed uint64, now time.Duration) {
	if n := pushed - p.pushed; n > 0 {
		*p = pace{pushed: pushed, at: now, each: (now - p.at) / time.Duration(n)}
	} else {
		p.each = max(p.each, now-p.at)
	}
}

// interval returns the time until run polls next. It is 0 if run has to be woken:
// slabs come too fast, or so slowly that the ticker seals most of them.
func (p *pace) interval(o *Options) time.Duration {
	if o.SlabCount < minPollSlabs || o.SlabCount-o.reserve()[ordinary] < minPollOrdinary || p.each < minPollPace || p.each > o.FlushInterval*3/4 {
		return 0
	}
	return p.each / 4
}
