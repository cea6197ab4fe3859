package promtext

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestBucketsHoldTheirValues(t *testing.T) {
	last := -1
	for _, v := range []uint64{0, 1, 127, 128, 255, 256, 257, 511, 512, 1000, 1e6, 1e9, 1<<40 - 1, 1 << 40, math.MaxInt64} {
		i := bucket(v)
		if top(i) < v || float64(top(i)-v) > float64(v)/128 || i < last {
			t.Errorf("%d is in bucket %d up to %d, after bucket %d", v, i, top(i), last)
		}
		if i > 0 && top(i-1) >= v {
			t.Errorf("%d is in bucket %d, and the one before goes up to %d", v, i, top(i-1))
		}
		last = i
	}
}

func TestQuantiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var parts [3]Histogram
	var all []time.Duration
	for i := range 30_000 {
		d := time.Duration(math.Exp(rng.Float64() * 20))
		parts[i%3].Record(d)
		all = append(all, d)
	}
	var h Histogram
	for i := range parts {
		h.Add(&parts[i])
	}
	slices.Sort(all)
	for _, q := range []float64{0, 0.5, 0.9, 0.99, 0.999, 1} {
		exact := all[max(0, int(math.Ceil(q*float64(len(all))))-1)]
		if got := h.Quantile(q); got < exact || float64(got-exact) > float64(exact)/128 {
			t.Errorf("quantile %v is %d, want %d", q, got, exact)
		}
	}
	if h.Count() != 30_000 || h.Max() != all[len(all)-1] || h.Over(h.Max()) != 0 || h.Over(0) < 29_000 {
		t.Errorf("count %d, max %v, over max %d, over 0 %d", h.Count(), h.Max(), h.Over(h.Max()), h.Over(0))
	}
	var empty Histogram
	if empty.Quantile(0.99) != 0 || empty.Max() != 0 {
		t.Error("an empty one is not 0")
	}
}

// Durations beyond the last bucket's are counted in it, and Snapshot counts each
// duration once.
func TestHistogramOfAnyDuration(t *testing.T) {
	var h Histogram
	for _, d := range []time.Duration{-1, 0, time.Second, 100 * time.Hour, math.MaxInt64} {
		h.Record(d)
	}
	b := h.Snapshot(0, 2*time.Second, 1000*time.Hour)
	if !slices.Equal(b.Counts, []uint64{2, 3, 3}) || b.Count != 5 || h.Max() != math.MaxInt64 || h.Quantile(0.5) < time.Second {
		t.Errorf("snapshot %+v, max %v, median %v", b, h.Max(), h.Quantile(0.5))
	}
}
