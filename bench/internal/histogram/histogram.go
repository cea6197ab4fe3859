// Package histogram counts durations in buckets that are at most 1/128 of
// their value wide, so that a percentile over millions of calls is known to
// better than one in a hundred without keeping them.
package histogram

import (
	"math"
	"math/bits"
	"time"
)

const sub = 7 // bits after the leading one that tell buckets apart

// Histogram is not safe for concurrent use; each goroutine has its own, and
// Add brings them together. The zero value is empty. Record does not allocate.
type Histogram struct {
	counts [(64-sub)<<sub + 1<<sub]uint64
	n      uint64
	max    time.Duration
}

// Record counts d. A negative one is 0.
func (h *Histogram) Record(d time.Duration) {
	d = max(0, d)
	h.counts[bucket(uint64(d))]++
	h.n++
	h.max = max(h.max, d)
}

// Add adds what o has counted.
func (h *Histogram) Add(o *Histogram) {
	for i, n := range o.counts {
		h.counts[i] += n
	}
	h.n += o.n
	h.max = max(h.max, o.max)
}

// Count is the number of durations.
func (h *Histogram) Count() uint64 { return h.n }

// Max is the longest, exactly.
func (h *Histogram) Max() time.Duration { return h.max }

// Quantile returns a duration that the share q of all, 0 to 1, do not exceed,
// and no more than 1/128 above the smallest such. It is 0 for an empty one.
func (h *Histogram) Quantile(q float64) time.Duration {
	rank := max(1, uint64(math.Ceil(q*float64(h.n))))
	var seen uint64
	for i, n := range h.counts {
		if seen += n; seen >= rank {
			return min(time.Duration(top(i)), h.max)
		}
	}
	return h.max
}

// Over returns how many were longer than d, but for those in its bucket.
func (h *Histogram) Over(d time.Duration) uint64 {
	var n uint64
	for _, c := range h.counts[bucket(uint64(d))+1:] {
		n += c
	}
	return n
}

// bucket is v itself up to 2^(sub+1), and above it v's leading sub+1 bits with
// their place.
func bucket(v uint64) int {
	shift := max(0, bits.Len64(v)-sub-1)
	return shift<<sub + int(v>>shift)
}

// top is the largest value in bucket i.
func top(i int) uint64 {
	shift := max(0, i>>sub-1)
	return uint64(i-shift<<sub+1)<<shift - 1
}
