package plan

import (
	"math"
	"time"
)

// flow is a Workload in the terms of the formulas below. They use
//
//	ρ  bytes a second that come: Rate × LineSize
//	P  bytes of the longest line: LineSizeP99
//	L  seconds that a Write takes: WriteLatency
//	S  seconds of the stall: Spike
//	B  bytes of a slab, N slabs
//	E  bytes of lines that a full slab is sure to hold
//
// and take it that at most ρt + P bytes come in any time t. That is an arrival
// curve as in R. L. Cruz, "A calculus for network delay, part I", IEEE
// Transactions on Information Theory 37 (1991), with one longest line as the
// burst. Without such a bound nothing can be guaranteed for lines of different
// sizes: their mean says nothing about the next second.
//
// Products are converted to float64 before they are added, which keeps a
// compiler from fusing the two: the results are the same on each architecture.
type flow struct {
	rate    float64 // ρ
	latency float64 // L
	spike   time.Duration
	longest int  // P
	uniform bool // all lines are P bytes long
}

func (w Workload) flow() flow {
	return flow{
		rate:    w.Rate * float64(w.LineSize),
		latency: w.WriteLatency.Seconds(),
		spike:   w.Spike,
		longest: w.LineSizeP99,
		uniform: w.LineSizeP99 == w.LineSize,
	}
}

// room is E:
//
//	B - (P - 1)     as a slab is sealed when the next line does not fit, so that
//	                the room that is left is at least one byte less than that line
//	⌊B / P⌋ · P     if the mean is P as well: then all lines have that size
//
// 0 if the longest line does not fit a slab at all.
func (f flow) room(size int) float64 {
	if f.uniform {
		return float64(size - size%f.longest)
	}
	return float64(max(0, size-(f.longest-1)))
}

// throughput is E / L, the bytes a second that the destination is sure to take.
//
// It is Little's law (J. D. C. Little, "A proof for the queuing formula
// L = λW", Operations Research 9, 1961) applied to the destination: it has the bytes that
// arrive in a second times the seconds that they stay, ρL. That is never more than one
// slab, so ρL ≤ E, or ρ ≤ E / L.
func (f flow) throughput(size int) float64 { return f.room(size) / f.latency }

// guaranteed is the longest stall, in seconds, that makes no producer wait at
// whatever moment it begins:
//
//	(N-a)·E / ρ     if ρL < E, else 0;  a = 2, or 3 from 8 slabs up
//
// With few slabs, take the latest moment at which run took a slab and left none in the
// queue: the other N-1 slabs were empty. Since then k writes have ended, and after each
// run took one more full slab with at least E bytes. The time that has passed is at most
// kL + S + L: k writes, the stall, and the write under way, which the stall may have met
// at its end. So at most ρ(kL + S + L) + P bytes arrived.
//
// A producer waits only if its line does not fit the last of the N-1 slabs.
// N-2 of them then hold E bytes or more, and the last one and that line are
// more than B bytes together, which is E + P or more. With the k slabs that have left,
// at least (k+N-1)·E + P bytes arrived. Since kρL ≤ kE, that needs
//
//	ρ(S + L)  ≥  (N-1)·E     or     S  ≥  (N-1)·E / ρ - L
//
// and ρL < E makes this more than (N-2)·E / ρ: the destination has one slab, one covers
// the write that the stall interrupted, and N-2 are left. The rest of the second is a
// reserve for a Flush or a slow wake-up.
//
// With more slabs run polls, and may take a slab only when the next is sealed: N-2 slabs
// are empty then instead of N-1, so one more is subtracted. From then on run takes the
// next slab when a write has ended, as above.
func (f flow) guaranteed(size, count int) float64 {
	if f.throughput(size) <= f.rate {
		return 0
	}
	away := 2
	if count >= polling {
		away = 3
	}
	return float64(count-away) * f.room(size) / f.rate
}

// recovery is how many seconds after a stall of the given length, in seconds,
// the next one may begin: (⌈ρS / (E - ρL)⌉ + 1) · L.
//
// With two stalls at most ρ(kL + 2S + L) + P bytes come in the proof for
// guaranteed, which then needs ρ(2S + L) - k(E - ρL) ≥ (N-1)·E for a producer
// to wait (N-2 with many slabs). That is as with one stall once k(E - ρL) ≥ ρS. The write that the
// stall held up is not counted on.
func (f flow) recovery(size int, stall float64) float64 {
	gain := f.room(size) - float64(f.rate*f.latency)
	return (math.Ceil(f.rate*stall/gain) + 1) * f.latency
}

// capacity puts together what count slabs of size do for w. BestCase is N·B / ρ:
// there is no more memory than that. It is reached only by a stall that finds
// nothing with the destination and nothing in a slab.
func (f flow) capacity(w Workload, size, count int) Capacity {
	c := Capacity{
		Workload:   w,
		SlabSize:   size,
		SlabCount:  count,
		Memory:     size * count,
		Guaranteed: duration(f.guaranteed(size, count)),
		BestCase:   duration(float64(count) * float64(size) / f.rate),
		Demand:     f.rate,
		Throughput: f.throughput(size),
		Limit:      LimitNone,
	}
	if size, count, met := f.choose(maxTotal); met {
		c.Needed = size * count
	}
	switch {
	case c.Throughput <= c.Demand:
		c.Limit = LimitThroughput
	case c.Guaranteed < w.Spike:
		c.Limit = LimitSpike
	}
	c.Met = c.Limit == LimitNone
	if c.Limit != LimitThroughput {
		stall := min(w.Spike, c.Guaranteed)
		c.Recovery = duration(math.Ceil(f.recovery(size, stall.Seconds())*1e9) / 1e9)
	}
	return c
}

// count is how many slabs of size guarantee the spike, from planSlabCount up,
// or false if a Writer cannot have so many:
//
//	N = a + ⌈S·ρ / E⌉     from S ≤ (N-a)·E / ρ
func (f flow) count(size int) (int, bool) {
	most := min(maxSlabCount, maxTotal/size)
	n := 2 + math.Ceil(float64(f.spike.Seconds()*f.rate)/f.room(size))
	if f.throughput(size) <= f.rate || n > float64(most) {
		return 0, false
	}
	count := max(planSlabCount, int(n))
	for duration(f.guaranteed(size, count)) < f.spike {
		count++ // a is 3, or the quotient was rounded down to a whole number
	}
	return count, count <= most
}

// preferred is the smallest power of two from planSlabSize up with
//
//	E ≥ 2ρL    the destination is idle half of the time
//	B ≥ 8P     an eighth of a slab is lost at its end at most
//
// or the largest slab there is. With half of the time to spare the backlog of a
// stall is gone after about the stall's length.
func (f flow) preferred() int {
	size := planSlabSize
	for size < maxSlabSize && (f.room(size) < 2*f.rate*f.latency || size/8 < f.longest) {
		size *= 2
	}
	return size
}

// choose returns the size and the number of slabs, and whether they meet the
// workload within budget bytes.
func (f flow) choose(budget int) (size, count int, met bool) {
	first := f.preferred()
	for size = first; size > 0 && size <= maxSlabSize; size *= 2 { // in case there would be too many
		if n, ok := f.count(size); ok && size <= budget/n {
			return size, n, true
		}
	}
	for size = first / 2; size >= minSlabSize; size /= 2 {
		if n, ok := f.count(size); ok && size <= budget/n {
			return size, n, true
		}
	}
	size, count = f.mostOf(budget)
	return size, count, false
}

// mostOf returns the slabs within budget bytes that outlast the longest stall,
// or the largest ones if none sustain the rate.
func (f flow) mostOf(budget int) (size, count int) {
	longest := -1.0
	for s := minSlabSize; s > 0 && s <= min(maxSlabSize, budget/2); s *= 2 {
		n := min(maxSlabCount, budget/s)
		g := f.guaranteed(s, n)
		sustains := f.throughput(s) > f.rate
		if sustains && g >= longest {
			longest = g
		} else if longest >= 0 {
			continue
		}
		size, count = s, n
	}
	return size, count
}
