package tables

import (
	"fmt"
	"math"
	"slices"

	"github.com/rollway/rollway/bench/internal/measure"
)

// Figures are the samples of some results, and their summaries by subject.
type Figures struct {
	measure.Results
	sums map[measure.Key]measure.Summary
}

func newFigures(r measure.Results) *Figures { return &Figures{r, r.Summarize()} }

// Has reports whether the subject was measured.
func (f *Figures) Has(name, library, mode string) bool {
	_, ok := f.sums[measure.Key{Case: name, Library: library, Mode: mode}]
	return ok
}

// At returns the summary of a subject.
func (f *Figures) At(name, library, mode string) (measure.Summary, error) {
	s, ok := f.sums[measure.Key{Case: name, Library: library, Mode: mode}]
	if !ok {
		return s, fmt.Errorf("no samples of %s, %s, %s: measure again", name, library, mode)
	}
	return s, nil
}

// Rounds returns the values of an extra figure, one for each round.
func (f *Figures) Rounds(name, library, mode, figure string) ([]float64, error) {
	var values []float64
	for _, s := range f.Samples {
		if s.Case == name && s.Library == library && s.Mode == mode {
			values = append(values, s.Extra[figure])
		}
	}
	if len(values) == 0 {
		_, err := f.At(name, library, mode)
		return nil, err
	}
	return values, nil
}

// Worst is the greatest value of an extra figure in any round.
func (f *Figures) Worst(name, library, mode, figure string) (float64, error) {
	values, err := f.Rounds(name, library, mode, figure)
	if err != nil {
		return 0, err
	}
	return max(0, slices.Max(values)), nil
}

// Total adds up an extra figure over all rounds.
func (f *Figures) Total(name, library, mode, figure string) (sum float64, err error) {
	values, err := f.Rounds(name, library, mode, figure)
	for _, v := range values {
		sum += v
	}
	return sum, err
}

// CPU returns the processor time of an operation in each sample, in ns.
func (f *Figures) CPU(name, library, mode string) (values []float64) {
	for _, s := range f.Samples {
		if s.Case == name && s.Library == library && s.Mode == mode {
			values = append(values, s.CPUNsPerOp)
		}
	}
	return values
}

// Ratio is the median, over the rounds, of the times of two libraries in a case.
func (f *Figures) Ratio(name, mode, a, b string) float64 {
	ratio, _ := f.Results.Ratio(measure.Key{Case: name, Library: a, Mode: mode}, measure.Key{Case: name, Library: b, Mode: mode})
	return ratio
}

// CPURatio is Ratio of the processors' time.
func (f *Figures) CPURatio(name, mode, a, b string) float64 {
	ratio, _ := f.Results.CPURatio(measure.Key{Case: name, Library: a, Mode: mode}, measure.Key{Case: name, Library: b, Mode: mode})
	return ratio
}

// Difference is the median, over the rounds, of a library's time in one case minus
// its time in another.
func (f *Figures) Difference(library, mode, a, b string) float64 {
	ns, _ := f.Results.Difference(measure.Key{Case: a, Library: library, Mode: mode}, measure.Key{Case: b, Library: library, Mode: mode})
	return ns
}

// Fastest is the library with the least time in a case, of those that were
// measured.
func (f *Figures) Fastest(name, mode string, libraries []string) (best string, err error) {
	for _, l := range libraries {
		if f.Has(name, l, mode) && (best == "" || f.ns(name, l, mode) < f.ns(name, best, mode)) {
			best = l
		}
	}
	if best == "" {
		return "", fmt.Errorf("no samples of others, %s: measure again", name)
	}
	return best, nil
}

func (f *Figures) ns(name, library, mode string) float64 {
	return f.sums[measure.Key{Case: name, Library: library, Mode: mode}].Ns
}

// Libraries lists what was measured in a case, in the order of the samples.
func (f *Figures) Libraries(name string) []string {
	return distinct(f.Samples, func(s measure.Sample) string {
		if s.Case != name {
			return ""
		}
		return s.Library
	})
}

// distinct lists the names that of gives, each once; "" is left out.
func distinct[T any](items []T, of func(T) string) []string {
	var names []string
	for _, it := range items {
		if name := of(it); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Circumstances says in one paragraph where and how the results were measured.
func (f *Figures) Circumstances() string {
	return fmt.Sprintf("%s, commit %s, %s on %s with GOMAXPROCS=%d (%s, %s, %d cores); %d interleaved rounds; in %d of %d samples other processes used more than %d %% of a core.",
		f.Date, f.Commit, f.Go, f.Machine.Arch, f.Machine.GOMAXPROCS, f.Machine.CPU, f.Machine.System, f.Machine.Cores, f.Results.Rounds, f.Noisy(), len(f.Samples), measure.NoisyPct)
}

// LeastCPU is the library that takes the least processor time in a case, of those
// that were measured; "" if none was.
func (f *Figures) LeastCPU(name, mode string, libraries []string) (best string) {
	cpu := math.Inf(1)
	for _, l := range libraries {
		if s, err := f.At(name, l, mode); err == nil && s.CPUNs < cpu {
			best, cpu = l, s.CPUNs
		}
	}
	return best
}

// Lossless lists the libraries that lost no line in a case.
func (f *Figures) Lossless(name, mode string, libraries []string) (all []string) {
	for _, l := range libraries {
		if s, err := f.At(name, l, mode); err == nil && s.Extra["lost_pct"] == 0 {
			all = append(all, l)
		}
	}
	return all
}
