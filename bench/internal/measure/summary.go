package measure

import (
	"math"
	"slices"
	"time"

	"github.com/rollway/rollway/internal/promtext"
)

// Samples in which other processes used more than NoisyPct of a core are left
// out while at least enoughQuiet remain.
const (
	NoisyPct    = 20
	enoughQuiet = 5
)

// Key names what a Summary is of.
type Key struct{ Case, Library, Mode string }

// Summary is the median of a subject's samples, with their spread.
type Summary struct {
	Samples, Noisy      int // used, and left out as noisy
	Ns, MinNs, MaxNs    float64
	CallerNs, CPUNs     float64
	Allocs, Bytes       float64
	Extra               map[string]float64 // medians
	NoisyButUsedSamples int                // too few were quiet, so these were used all the same
}

// Summarize returns a summary for each subject of the results.
func (r *Results) Summarize() map[Key]Summary {
	groups := map[Key][]Sample{}
	for _, s := range r.Samples {
		k := Key{s.Case, s.Library, s.Mode}
		groups[k] = append(groups[k], s)
	}
	out := map[Key]Summary{}
	for k, samples := range groups {
		out[k] = summarize(samples)
	}
	return out
}

func summarize(samples []Sample) Summary {
	var quiet []Sample
	for _, s := range samples {
		if s.OthersPct <= NoisyPct {
			quiet = append(quiet, s)
		}
	}
	var sum Summary
	if len(quiet) >= enoughQuiet || len(quiet) == len(samples) {
		sum.Noisy = len(samples) - len(quiet)
	} else {
		sum.NoisyButUsedSamples = len(samples) - len(quiet)
		quiet = samples
	}
	sum.Samples = len(quiet)
	of := func(field func(Sample) float64) []float64 {
		var values []float64
		for _, s := range quiet {
			values = append(values, field(s))
		}
		slices.Sort(values)
		return values
	}
	ns := of(func(s Sample) float64 { return s.NsPerOp })
	sum.Ns, sum.MinNs, sum.MaxNs = Median(ns), ns[0], ns[len(ns)-1]
	sum.CallerNs = Median(of(func(s Sample) float64 { return s.CallerNs }))
	sum.CPUNs = Median(of(func(s Sample) float64 { return s.CPUNsPerOp }))
	sum.Allocs = Median(of(func(s Sample) float64 { return s.AllocsPerOp }))
	sum.Bytes = Median(of(func(s Sample) float64 { return s.BytesPerOp }))
	sum.Extra = map[string]float64{}
	for name := range quiet[0].Extra {
		sum.Extra[name] = Median(of(func(s Sample) float64 { return s.Extra[name] }))
	}
	return sum
}

// Noisy is how many samples are noisy.
func (r *Results) Noisy() (n int) {
	for _, s := range r.Samples {
		if s.OthersPct > NoisyPct {
			n++
		}
	}
	return n
}

// Ratio is the median of a's time ÷ b's in the same round, and of how many
// rounds: rounds in which both were quiet, or all where they are less than
// enough. A round's samples were taken within seconds of each other, so what
// the machine did for minutes is in both and falls out, as it does not where
// two medians are divided.
func (r *Results) Ratio(a, b Key) (ratio float64, rounds int) {
	return r.ofRounds(a, b, func(a, b *Sample) float64 { return a.NsPerOp / b.NsPerOp })
}

// CPURatio is Ratio of the processors' time.
func (r *Results) CPURatio(a, b Key) (ratio float64, rounds int) {
	return r.ofRounds(a, b, func(a, b *Sample) float64 { return a.CPUNsPerOp / b.CPUNsPerOp })
}

// Difference is the median of a's time − b's, in ns, of the rounds of Ratio.
func (r *Results) Difference(a, b Key) (ns float64, rounds int) {
	return r.ofRounds(a, b, func(a, b *Sample) float64 { return a.NsPerOp - b.NsPerOp })
}

func (r *Results) ofRounds(a, b Key, compare func(a, b *Sample) float64) (value float64, rounds int) {
	type pair struct{ a, b *Sample }
	pairs := map[int]*pair{}
	for i := range r.Samples {
		s := &r.Samples[i]
		k := Key{s.Case, s.Library, s.Mode}
		if k != a && k != b {
			continue
		}
		p := pairs[s.Round]
		if p == nil {
			p = new(pair)
			pairs[s.Round] = p
		}
		if k == a {
			p.a = s
		} else {
			p.b = s
		}
	}
	var all, quiet []float64
	for _, p := range pairs {
		if p.a == nil || p.b == nil {
			continue
		}
		all = append(all, compare(p.a, p.b))
		if p.a.OthersPct <= NoisyPct && p.b.OthersPct <= NoisyPct {
			quiet = append(quiet, all[len(all)-1])
		}
	}
	if len(quiet) >= enoughQuiet {
		all = quiet
	}
	if len(all) == 0 {
		return math.NaN(), 0
	}
	slices.Sort(all)
	return Median(all), len(all)
}

// Median is that of values in any order; 0 of none.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	if len(sorted) == 0 {
		return 0
	}
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}

// Quantiles are times in nanoseconds.
type Quantiles struct {
	Mean time.Duration `json:"mean"`
	P50  time.Duration `json:"p50"`
	P75  time.Duration `json:"p75"`
	P95  time.Duration `json:"p95"`
	P99  time.Duration `json:"p99"`
	P999 time.Duration `json:"p999"`
	Max  time.Duration `json:"max"`
}

// QuantilesOf are those of h.
func QuantilesOf(h *promtext.Histogram) Quantiles {
	all := h.Snapshot()
	return Quantiles{
		Mean: all.Sum / time.Duration(max(1, all.Count)), P50: h.Quantile(0.5), P75: h.Quantile(0.75), P95: h.Quantile(0.95),
		P99: h.Quantile(0.99), P999: h.Quantile(0.999), Max: h.Max(),
	}
}
