package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/bench/latency"
)

// latencyTables makes the tables from the writers that the results have.
func latencyTables(r *measure.Results) (string, error) {
	sums := r.Summarize()
	text := "\n" + r.Circumstances() + fmt.Sprintf("\nVersions: zerolog %s, zap %s, phuslu/log %s. Raw results: [latency.json](results/latency.json).\n",
		r.Versions["github.com/rs/zerolog"], r.Versions["go.uber.org/zap"], r.Versions["github.com/phuslu/log"])
	scenarios, err := latency.Scenarios()
	if err != nil {
		return "", err
	}
	for _, s := range scenarios {
		made, err := scenarioTables(r, sums, s)
		if err != nil {
			return "", err
		}
		text += made
	}
	return text + "\n", nil
}

// libraries lists the writers of a scenario in the order of the results. Their
// names are those of the results, as the planned slabs may be others now.
func libraries(r *measure.Results, scenario string) []string {
	var names []string
	seen := map[string]bool{}
	for _, s := range r.Samples {
		if s.Round == 0 && s.Case == scenario && s.Mode == latency.Mode(latency.Producers()[0]) && !seen[s.Library] {
			seen[s.Library] = true
			names = append(names, s.Library)
		}
	}
	return names
}

// worst is the greatest value of an extra figure over all rounds.
func worst(r *measure.Results, k measure.Key, name string) float64 {
	most := 0.0
	for _, v := range rounds(r, k, name) {
		most = max(most, v)
	}
	return most
}

// rounds are the values of an extra figure, one of each round.
func rounds(r *measure.Results, k measure.Key, name string) []float64 {
	var values []float64
	for _, s := range r.Samples {
		if s.Case == k.Case && s.Library == k.Library && s.Mode == k.Mode {
			values = append(values, s.Extra[name])
		}
	}
	return values
}

func scenarioTables(r *measure.Results, sums map[measure.Key]measure.Summary, s latency.Scenario) (string, error) {
	names := libraries(r, s.Name)
	if len(names) == 0 {
		return "", fmt.Errorf("%s: %w", s.Name, errMissing)
	}
	nulls := s.Writers[len(s.Writers)-1].Name
	text := "\n### " + s.Name + "\n"
	targets := measure.NewTable("producers", "figure", "ours", "target", "null producer", "reached")
	for _, producers := range latency.Producers() {
		mode := latency.Mode(producers)
		key := func(name string) measure.Key { return measure.Key{Case: s.Name, Library: name, Mode: mode} }
		own, ok := sums[key(names[0])]
		null, ok2 := sums[key(nulls)]
		if !ok || !ok2 {
			return "", fmt.Errorf("%s, %s: %w", s.Name, mode, errMissing)
		}
		lost := worst(r, key(names[0]), "lost")
		targets.Row(mode, "lines lost, any round", measure.Count(lost), "0", "–", verdict(lost == 0))
		for _, t := range []struct {
			title, name string
			bound       time.Duration
		}{{"call, p50", "call_p50", s.CallP50}, {"call, p99", "call_p99", s.CallP99}, {"call, p99.9", "call_p999", s.CallP999}} {
			if t.bound > 0 {
				targets.Row(mode, t.title, micros(own.Extra[t.name]), "≤ "+micros(float64(t.bound)), micros(null.Extra[t.name]), verdict(own.Extra[t.name] <= float64(t.bound)))
			}
		}
		if s.CallMax > 0 {
			most := worst(r, key(names[0]), "call_max")
			other := nulls
			if _, ok := sums[key(latency.Working)]; ok {
				other = latency.Working
			}
			targets.Row(mode, "longest call, any round", micros(most), "≤ "+micros(float64(s.CallMax)), micros(worst(r, key(other), "call_max")), longestVerdict(r, key(names[0]), key(other), most <= float64(s.CallMax)))
		}
		if s.DueOfBest {
			best, bestName := math.Inf(1), "none"
			for _, name := range names[1:] {
				if sum, ok := sums[key(name)]; ok && !ownLatency(name) && name != nulls && worst(r, key(name), "lost") == 0 && sum.Extra["due_p999"] < best {
					best, bestName = sum.Extra["due_p999"], name
				}
			}
			reached := verdict(own.Extra["due_p999"] <= best)
			if greater, p := measure.RankTest(rounds(r, key(names[0]), "due_p999"), rounds(r, key(bestName), "due_p999")); own.Extra["due_p999"] > best && p >= 0.05 {
				reached = fmt.Sprintf("not told apart: longer in %.0f %% of pairs of rounds, p = %.2f", 100*greater, p)
			}
			targets.Row(mode, "due to return, p99.9", micros(own.Extra["due_p999"]), "≤ "+micros(best)+" ("+bestName+")", micros(null.Extra["due_p999"]), reached)
		}

		t := measure.NewTable("writer, µs", "call p50", "p99", "p99.9", "max", "due to return p50", "p99", "p99.9", "its lower quartile", "max", "lost", "counted by it", "CPU µs per line")
		for _, name := range names {
			sum, ok := sums[key(name)]
			if !ok {
				return "", fmt.Errorf("%s, %s, %s: %w", s.Name, name, mode, errMissing)
			}
			row := []string{name}
			for _, figure := range []string{"call_p50", "call_p99", "call_p999", "call_max", "due_p50", "due_p99", "due_p999", "due_max"} {
				row = append(row, measure.Number(sum.Extra[figure]/1000))
				if figure == "due_p999" {
					values := slices.Sorted(slices.Values(rounds(r, key(name), figure)))
					row = append(row, measure.Number(values[len(values)/4]/1000))
				}
			}
			counted := "–"
			if c, ok := sum.Extra["counted"]; ok {
				counted = measure.Count(c)
			}
			lost := fmt.Sprintf("%s of %s", measure.Count(sum.Extra["lost"]), measure.Count(sum.Extra["lines"]))
			t.Row(append(row, lost, counted, measure.Number(sum.CPUNs/1000))...)
		}
		text += fmt.Sprintf("\n**%s: medians over the rounds**\n\n%s", mode, t)
	}
	return text + "\n**Against the targets**\n\n" + targets.String(), nil
}

// longestVerdict says how many calls of ours and of a null producer took longer
// than the bound, where ours did not keep it and the null producer did no better:
// then it is the machine that held the thread up.
func longestVerdict(r *measure.Results, own, null measure.Key, kept bool) string {
	over := func(k measure.Key) (calls, all float64) {
		for _, v := range rounds(r, k, "call_over_500us") {
			calls += v
		}
		for _, v := range rounds(r, k, "lines") {
			all += v
		}
		return calls, all
	}
	calls, all := over(own)
	others, _ := over(null)
	if kept || calls > others {
		return verdict(kept)
	}
	return fmt.Sprintf("but for %s of %s calls; of the null producer's, %s", measure.Count(calls), measure.Count(all), measure.Count(others))
}

// ownLatency reports whether the name is of this project's writer, in this
// build or in the one that measured.
func ownLatency(name string) bool {
	return strings.HasPrefix(name, "slab persisted ") || strings.HasPrefix(name, "slab, ") || strings.HasPrefix(name, "shard ") || strings.HasPrefix(name, "slab 8 ")
}

func micros(ns float64) string { return measure.Number(ns/1000) + " µs" }
