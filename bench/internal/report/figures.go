package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rollway/rollway/bench/internal/measure"
)

// Figures are the samples of some results, and their summaries by subject.
type Figures struct {
	measure.Results // of the samples
	sums            map[measure.Key]measure.Summary
}

// FiguresOf summarizes the samples of results, of the first one's circumstances.
func FiguresOf(all ...measure.Results) *Figures {
	f := &Figures{sums: map[measure.Key]measure.Summary{}}
	if len(all) > 0 {
		f.Results = all[0]
		f.Samples = slices.Clone(f.Samples)
	}
	for i, r := range all {
		maps.Copy(f.sums, r.Summarize())
		if i > 0 {
			f.Samples = append(f.Samples, r.Samples...)
		}
	}
	return f
}

// Get returns a summary; ok is false where the subject was not measured.
func (f *Figures) Get(name, library, mode string) (s measure.Summary, ok bool) {
	s, ok = f.sums[measure.Key{Case: name, Library: library, Mode: mode}]
	return s, ok
}

// At returns a summary that must be there.
func (f *Figures) At(name, library, mode string) measure.Summary {
	s, ok := f.Get(name, library, mode)
	if !ok {
		Miss("%s, %s, %s", name, library, mode)
	}
	return s
}

// Rounds returns the values of an extra figure, one for each round.
func (f *Figures) Rounds(name, library, mode, figure string) []float64 {
	var values []float64
	for _, s := range f.Samples {
		if s.Case == name && s.Library == library && s.Mode == mode {
			values = append(values, s.Extra[figure])
		}
	}
	return values
}

// Worst is the greatest value of an extra figure in any round.
func (f *Figures) Worst(name, library, mode, figure string) float64 {
	values := f.Rounds(name, library, mode, figure)
	if len(values) == 0 {
		Miss("%s, %s, %s", name, library, mode)
	}
	return max(0, slices.Max(values))
}

// Total adds up an extra figure over all rounds.
func (f *Figures) Total(name, library, mode, figure string) (sum float64) {
	for _, v := range f.Rounds(name, library, mode, figure) {
		sum += v
	}
	return sum
}

// Modes lists the modes of the samples in their order.
func (f *Figures) Modes() []string {
	return distinct(f.Samples, func(s measure.Sample) string { return s.Mode })
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

// Rivals names the versions of the rival loggers.
func Rivals(r *measure.Results) string {
	return fmt.Sprintf("zerolog %s, zap %s, phuslu/log %s", r.Versions["github.com/rs/zerolog"], r.Versions["go.uber.org/zap"], r.Versions["github.com/phuslu/log"])
}

// Circumstances says in one paragraph where and how results came to be.
func Circumstances(r *measure.Results) string {
	return fmt.Sprintf("%s, commit %s, %s on %s with GOMAXPROCS=%d (%s, %s, %d cores); %d interleaved rounds; in %d of %d samples other processes used more than %d %% of a core.\n",
		r.Date, r.Commit, r.Go, r.Machine.Arch, r.Machine.GOMAXPROCS, r.Machine.CPU, r.Machine.System, r.Machine.Cores, r.Rounds, r.Noisy(), len(r.Samples), measure.NoisyPct)
}

// Raw links to a file of raw results.
func Raw(file string) string { return fmt.Sprintf("[%s](results/%s)", file, file) }

// Number formats v with three significant digits, or more where it has more
// before the point.
func Number(v float64) string {
	switch a := math.Abs(v); {
	case a >= 100:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

// Count formats a count: whole where it is whole to a hundredth.
func Count(v float64) string {
	if math.Abs(v-math.Round(v)) < 0.01 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// Whole formats v without a fraction.
func Whole(v float64) string { return fmt.Sprintf("%.0f", v) }

// Spread is a median with the least and the most, divided by unit.
func Spread(s measure.Summary, unit float64) string {
	return fmt.Sprintf("%s (%s–%s)", Number(s.Ns/unit), Number(s.MinNs/unit), Number(s.MaxNs/unit))
}

// Allocations are those of an operation, with their bytes.
func Allocations(s measure.Summary) string { return fmt.Sprintf("%s (%.0f)", Count(s.Allocs), s.Bytes) }

// Percent is a share in percent, 0 of nothing.
func Percent(part, whole float64) string {
	if part == 0 || whole == 0 {
		return "0"
	}
	return Number(100*part/whole) + " %"
}

// Millis and Micros format nanoseconds.
func Millis[T ~int64 | ~float64](ns T) string { return Number(float64(ns)/1e6) + " ms" }

// Micros formats nanoseconds.
func Micros(ns float64) string { return Number(ns/1e3) + " µs" }

// MiB formats bytes.
func MiB[T ~int | ~int64 | ~float64](n T) string { return Number(float64(n)/(1<<20)) + " MiB" }

// Seconds formats a time to the second.
func Seconds(s float64) string { return time.Duration(s * 1e9).Round(time.Second).String() }

// Dash is s, or a dash for nothing.
func Dash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

// Join formats values and joins them.
func Join[T any](values []T, separator string, format func(T) string) string {
	var all []string
	for _, v := range values {
		all = append(all, format(v))
	}
	return strings.Join(all, separator)
}
