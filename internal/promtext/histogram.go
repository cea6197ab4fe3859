package promtext

import (
	"math"
	"math/bits"
	"slices"
	"sync/atomic"
	"time"
)

const (
	sub     = 7  // bits after the leading one that tell buckets apart
	longest = 42 // bits of the longest duration with a bucket of its own: 73 minutes
)

// A Histogram counts durations in buckets that are at most 1/128 of their value
// wide: a percentile over millions of calls is known to better than one in a hundred.
// The zero value is empty. All methods are safe for concurrent use; none allocates,
// except Snapshot.
type Histogram struct {
	counts [(longest-sub)<<sub + 1<<sub]atomic.Uint64
	sum    atomic.Int64
	max    atomic.Int64
}

// Record counts d. A negative one counts as 0.
func (h *Histogram) Record(d time.Duration) {
	d = max(0, d)
	h.counts[bucket(uint64(d))].Add(1)
	h.sum.Add(int64(d))
	h.raise(int64(d))
}

func (h *Histogram) raise(d int64) {
	for {
		longest := h.max.Load()
		if d <= longest || h.max.CompareAndSwap(longest, d) {
			return
		}
	}
}

// Add adds what o has counted.
func (h *Histogram) Add(o *Histogram) {
	for i := range o.counts {
		if n := o.counts[i].Load(); n > 0 {
			h.counts[i].Add(n)
		}
	}
	h.sum.Add(o.sum.Load())
	h.raise(o.max.Load())
}

// Count returns the number of durations.
func (h *Histogram) Count() (n uint64) {
	for i := range h.counts {
		n += h.counts[i].Load()
	}
	return n
}

// Max returns the longest duration, exactly.
func (h *Histogram) Max() time.Duration { return time.Duration(h.max.Load()) }

// Quantile returns the smallest duration that the share q of all, 0 to 1, does not
// exceed, rounded up by at most 1/128. It is 0 for an empty Histogram.
func (h *Histogram) Quantile(q float64) time.Duration {
	rank := max(1, uint64(math.Ceil(q*float64(h.Count()))))
	var seen uint64
	for i := range h.counts {
		if seen += h.counts[i].Load(); seen >= rank {
			return min(time.Duration(top(i)), h.Max())
		}
	}
	return h.Max()
}

// Over returns how many durations were longer than d, without those in d's bucket.
func (h *Histogram) Over(d time.Duration) (n uint64) {
	for i := bucket(uint64(max(0, d))) + 1; i < len(h.counts); i++ {
		n += h.counts[i].Load()
	}
	return n
}

// Buckets are what a Histogram had counted at one moment.
type Buckets struct {
	Bounds []time.Duration
	Counts []uint64 // of the durations up to each bound
	Count  uint64   // of all
	Sum    time.Duration
}

// Snapshot returns the counts up to each of the bounds, which ascend. A duration
// within 1/128 of a bound may count as longer.
func (h *Histogram) Snapshot(bounds ...time.Duration) Buckets {
	b := Buckets{Bounds: slices.Clone(bounds), Sum: time.Duration(h.sum.Load())}
	next := 0
	for _, bound := range bounds {
		for ; next < len(h.counts) && top(next) <= uint64(bound); next++ {
			b.Count += h.counts[next].Load()
		}
		b.Counts = append(b.Counts, b.Count)
	}
	for ; next < len(h.counts); next++ {
		b.Count += h.counts[next].Load()
	}
	return b
}

// bucket returns v up to 2^(sub+1), and above it v's leading sub+1 bits with their
// position. The last bucket has all values of more than longest bits, too.
func bucket(v uint64) int {
	v = min(v, 1<<longest-1)
	shift := max(0, bits.Len64(v)-sub-1)
	return shift<<sub + int(v>>shift)
}

// top returns the largest value in bucket i.
func top(i int) uint64 {
	if i == (longest-sub)<<sub+1<<sub-1 {
		return math.MaxInt64
	}
	shift := max(0, i>>sub-1)
	return uint64(i-shift<<sub+1)<<shift - 1
}
