package ingest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rollway/rollway/bench/internal/measure"
)

// Targets of a request.
const (
	maxOfNaive  = 0.2  // ns of ours ÷ ns of the article's first version
	maxAllocs   = 2    // of a request
	maxPerEvent = 0.01 // allocations: what is below is none
)

// errMissing is a subject without a sample: the results are of another version.
var errMissing = errors.New("no samples: measure again")

// Tables makes what stands between the markers of the document.
func (r *Results) Tables() (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s\nCommand: `%s`; raw results: [%s.json](results/%s.json).\n", r.Circumstances(), r.Command, Kind, Kind)
	for _, part := range Parts() {
		if o, ok := r.Origins[part]; ok && o != r.origin() {
			fmt.Fprintf(&b, "Of that, %s by `%s` on %s, commit %s.\n", part, o.Command, o.Date, o.Commit)
		}
	}
	sums := r.Summarize()
	if err := r.benchmarkTable(&b, sums); err != nil {
		return "", err
	}
	if err := requestTables(&b, sums); err != nil {
		return "", err
	}
	if err := loadTables(&b, r.Runs); err != nil {
		return "", err
	}
	rivalTables(&b, r.Rivals, r.LeftOut)
	saturationTable(&b, r.Saturated)
	return b.String() + "\n", nil
}

func verdict(reached bool) string {
	if reached {
		return "yes"
	}
	return "**no**"
}

// targets is a table of figures held against what they should be.
type targets struct{ *measure.Table }

func newTargets() targets { return targets{measure.NewTable("figure", "here", "target", "reached")} }

func (t targets) row(name, here, target string, reached bool) {
	t.Row(name, here, target, verdict(reached))
}

func requestTables(b *strings.Builder, sums map[measure.Key]measure.Summary) error {
	of := func(events int, name string) measure.Summary {
		return sums[measure.Key{Case: sizeCase(events), Library: name, Mode: serial}]
	}
	names := []string{Naive, Pooled, Buffered, Synced}
	for _, events := range Sizes() {
		for _, name := range names {
			if of(events, name).Samples == 0 {
				return fmt.Errorf("%s, %s: %w", sizeCase(events), name, errMissing)
			}
		}
	}
	t := newTargets()
	many := Sizes()[0]
	ratio := of(many, Buffered).Ns / of(many, Naive).Ns
	t.row(fmt.Sprintf("ns of %s ÷ ns of the article's first version, %s", Buffered, sizeCase(many)), fmt.Sprintf("%.3f", ratio), fmt.Sprintf("≤ %.1f", maxOfNaive), ratio <= maxOfNaive)
	for _, name := range []string{Buffered, Synced} {
		allocs := of(many, name).Allocs
		per := (allocs - of(1, name).Allocs) / float64(many-1)
		t.row(fmt.Sprintf("allocations of a request of %s, %s", sizeCase(many), name), measure.Count(allocs), fmt.Sprintf("≤ %d", maxAllocs), allocs < maxAllocs+maxPerEvent)
		t.row("allocations of each event, "+name, fmt.Sprintf("%.3f", per), "0", per < maxPerEvent)
	}
	fmt.Fprintf(b, "\n**A request against the targets**\n\n%s", t)
	for _, events := range Sizes() {
		t := measure.NewTable("pipeline", "µs, median (least to most)", "CPU µs", "÷ first version", "allocations", "bytes allocated", "noisy samples used")
		for _, name := range names {
			s := of(events, name)
			us := func(ns float64) string { return measure.Number(ns / 1e3) }
			t.Row(name, fmt.Sprintf("%s (%s–%s)", us(s.Ns), us(s.MinNs), us(s.MaxNs)), us(s.CPUNs), measure.Number(s.Ns/of(events, Naive).Ns),
				measure.Count(s.Allocs), fmt.Sprintf("%.0f", s.Bytes), fmt.Sprintf("%d of %d", s.NoisyButUsedSamples, s.Samples))
		}
		fmt.Fprintf(b, "\n**A request of %s, without net/http**\n\n%s", sizeCase(events), t)
	}
	enrichmentTable(b, sums, of(many, Buffered))
	return nil
}

// benchmarkTable has the article's own benchmark.
func (r *Results) benchmarkTable(b *strings.Builder, sums map[measure.Key]measure.Summary) error {
	t := measure.NewTable("version", "article: ns, bytes, allocations", "here: µs, median (least to most)", "bytes allocated", "allocations")
	calls := 0
	for _, s := range r.Samples {
		if s.Case == CaseBenchmark && s.Library == Naive {
			calls += s.Ops
		}
	}
	var all []measure.Summary
	for _, v := range []struct{ name, published string }{{Naive, "145000, 128 KB, 420"}, {Pooled, "89000, 62 KB, 210"}} {
		s := sums[measure.Key{Case: CaseBenchmark, Library: v.name, Mode: serial}]
		if s.Samples == 0 {
			return fmt.Errorf("%s, %s: %w", CaseBenchmark, v.name, errMissing)
		}
		all = append(all, s)
		t.Row(v.name, v.published, fmt.Sprintf("%s (%s–%s)", measure.Number(s.Ns/1e3), measure.Number(s.MinNs/1e3), measure.Number(s.MaxNs/1e3)),
			fmt.Sprintf("%.0f", s.Bytes), measure.Count(s.Allocs))
	}
	less := func(before, after float64) string { return fmt.Sprintf("%+.0f %%", 100*(after/before-1)) }
	t.Row("after ÷ before", "−38 %, −51 %, −50 %", less(all[0].Ns, all[1].Ns), less(all[0].Bytes, all[1].Bytes), less(all[0].Allocs, all[1].Allocs))
	fmt.Fprintf(b, "\n**The article's benchmark**: 100 events in memory, decoded, normalized, built and encoded, %d times each\n\n%s", calls, t)
	return nil
}
