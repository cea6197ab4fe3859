package latency

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/bench/internal/report"
)

// Tables makes the tables of the writers that the results have.
func Tables(r *measure.Results) string {
	f := report.FiguresOf(*r)
	text := "\n" + report.Circumstances(r) + fmt.Sprintf("\nVersions: %s. Raw results: %s.\n", report.Rivals(r), report.Raw("latency.json"))
	scenarios, err := Scenarios()
	if err != nil {
		panic(err) // the workload is a constant
	}
	for _, s := range scenarios {
		text += s.tables(f)
	}
	return text + "\n"
}

func (s Scenario) tables(f *report.Figures) string {
	// Names are those of the results, as the planned slabs may be others now.
	names := f.Libraries(s.Name)
	if len(names) == 0 {
		report.Miss("%s", s.Name)
	}
	text := "\n### " + s.Name + "\n"
	targets := report.NewTable("producers", "figure", "ours", "target", "null producer", "reached")
	for _, producers := range Producers() {
		mode := Mode(producers)
		s.addTargets(targets, f, names, mode)
		at := func(name string) measure.Summary { return f.At(s.Name, name, mode) }
		micros := func(head, figure string) report.Column[string] {
			return report.Column[string]{Head: head, Cell: func(name string) string { return report.Number(at(name).Extra[figure] / 1e3) }}
		}
		text += report.Of(names,
			report.Column[string]{Head: "writer, µs", Cell: func(name string) string { return name }},
			micros("call p50", "call_p50"), micros("p99", "call_p99"), micros("p99.9", "call_p999"), micros("max", "call_max"),
			micros("due to return p50", "due_p50"), micros("p99", "due_p99"), micros("p99.9", "due_p999"),
			report.Column[string]{Head: "its lower quartile", Cell: func(name string) string {
				values := slices.Sorted(slices.Values(f.Rounds(s.Name, name, mode, "due_p999")))
				return report.Number(values[len(values)/4] / 1e3)
			}},
			micros("max", "due_max"),
			report.Column[string]{Head: "lost", Cell: func(name string) string {
				return report.Count(at(name).Extra["lost"]) + " of " + report.Count(at(name).Extra["lines"])
			}},
			report.Column[string]{Head: "counted by it", Cell: func(name string) string {
				if c, ok := at(name).Extra["counted"]; ok {
					return report.Count(c)
				}
				return "–"
			}},
			report.Column[string]{Head: "CPU µs per line", Cell: func(name string) string { return report.Number(at(name).CPUNs / 1e3) }},
		).Titled("**%s: medians over the rounds**", mode)
	}
	return text + targets.Titled("**Against the targets**")
}

// addTargets compares ours, the first of names, with the targets and with a null
// producer, the last of them.
func (s Scenario) addTargets(t *report.Table, f *report.Figures, names []string, mode string) {
	own, null := names[0], s.Writers[len(s.Writers)-1].Name
	extra := func(name, figure string) float64 { return f.At(s.Name, name, mode).Extra[figure] }
	worst := func(name, figure string) float64 { return f.Worst(s.Name, name, mode, figure) }
	lost := worst(own, "lost")
	t.Row(mode, "lines lost, any round", report.Count(lost), "0", "–", report.Verdict(lost == 0))
	for _, bar := range []struct {
		title, figure string
		most          time.Duration
	}{{"call, p50", "call_p50", s.CallP50}, {"call, p99", "call_p99", s.CallP99}, {"call, p99.9", "call_p999", s.CallP999}} {
		if is, most := extra(own, bar.figure), float64(bar.most); most > 0 {
			t.Row(mode, bar.title, report.Micros(is), "≤ "+report.Micros(most), report.Micros(extra(null, bar.figure)), report.Verdict(is <= most))
		}
	}
	if bound := float64(s.CallMax); bound > 0 {
		other := null
		if slices.Contains(names, Working) {
			other = Working
		}
		longest := worst(own, "call_max")
		t.Row(mode, "longest call, any round", report.Micros(longest), "≤ "+report.Micros(bound), report.Micros(worst(other, "call_max")), s.longestVerdict(f, own, other, mode, longest <= bound))
	}
	if s.DueOfBest {
		due := extra(own, "due_p999")
		best, bestName := math.Inf(1), "none"
		for _, name := range names[1:] {
			if !isOwn(name) && name != null && worst(name, "lost") == 0 && extra(name, "due_p999") < best {
				best, bestName = extra(name, "due_p999"), name
			}
		}
		reached := report.Verdict(due <= best)
		if greater, p := measure.RankTest(f.Rounds(s.Name, own, mode, "due_p999"), f.Rounds(s.Name, bestName, mode, "due_p999")); due > best && p >= 0.05 {
			reached = fmt.Sprintf("not told apart: longer in %.0f %% of pairs of rounds, p = %.2f", 100*greater, p)
		}
		t.Row(mode, "due to return, p99.9", report.Micros(due), "≤ "+report.Micros(best)+" ("+bestName+")", report.Micros(extra(null, "due_p999")), reached)
	}
}

// longestVerdict says how many calls of ours and of a null producer took longer
// than the bound, where ours did not keep it and the null producer did no better:
// then the machine held the thread up.
func (s Scenario) longestVerdict(f *report.Figures, own, null, mode string, kept bool) string {
	over := func(name string) float64 { return f.Total(s.Name, name, mode, "call_over_500us") }
	if kept || over(own) > over(null) {
		return report.Verdict(kept)
	}
	return fmt.Sprintf("but for %s of %s calls; of the null producer's, %s", report.Count(over(own)), report.Count(f.Total(s.Name, own, mode, "lines")), report.Count(over(null)))
}

// isOwn reports whether the name is of this project's writer, in this build or
// in the one that measured.
func isOwn(name string) bool {
	return strings.HasPrefix(name, "slab persisted ") || strings.HasPrefix(name, "slab, ") || strings.HasPrefix(name, "slab 8 ")
}
