package writers

import (
	"fmt"

	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/bench/internal/report"
)

// Tables makes the tables of all cases. Persisted slabs, which not every system
// has, may be missing in the results; nothing else may.
func Tables(r *measure.Results) string {
	f := report.FiguresOf(*r)
	return "\n" + report.Circumstances(r) + fmt.Sprintf("\nVersions: %s. Raw results: %s.\n", report.Rivals(r), report.Raw("writers.json")) +
		"\nlogf's own SlabWriter is not among them, because the public module proxy refuses it:\n\n```text\n" + LogfAbsent + "\n```\n" +
		"\n\"Slab design as published\" is what its author's text describes, written anew: a mutex and a copy, full and free slabs through channels, no accounts, no retries.\n" +
		rawTables(f) + frontTable(f) + fileTable(f) + publishedTable(f) + "\n"
}

func rawTables(f *report.Figures) string {
	var names []string
	for _, w := range Writers() {
		if _, ok := f.Get(Raw, w.Name, rawModes[0].String()); ok || w.Name != Persisted {
			names = append(names, w.Name)
		}
	}
	text := "\n### A Write of 256 bytes\n" + rawTargets(f).Titled("**Against the targets**: `slab.Writer`, all its accounts on, ≤ 1.00 × the best of mutex and bufio, zap's and the published design; persisted slabs, which have to stand a file that is cut under them, cost the caller ≤ 10 ns more and ≤ 2.00 × the CPU time")
	var modes []string
	for _, m := range rawModes {
		modes = append(modes, m.String())
	}
	for _, table := range []struct {
		title string
		cell  func(measure.Summary) string
	}{
		{"ns per line until everything is through: median (least to most)", spread},
		{"ns per line for the callers alone", func(s measure.Summary) string { return report.Number(s.CallerNs) }},
		{"CPU ns per line", func(s measure.Summary) string { return report.Number(s.CPUNs) }},
		{"allocations per line (bytes)", report.Allocations},
		{"lines lost, %", lostPct},
	} {
		text += report.Grid("writer", names, modes, func(name, mode string) string { return table.cell(f.At(Raw, name, mode)) }).Titled("**%s**", table.title)
	}
	return text
}

func rawTargets(f *report.Figures) *report.Table {
	t := report.NewTable("goroutines on GOMAXPROCS", "slab, ns", "best of the three", "slab ÷ best", "reached", "persisted − heap for the caller, ns", "reached", "CPU, persisted ÷ heap", "reached")
	for _, m := range rawModes {
		mode := m.String()
		own := f.At(Raw, Heap, mode)
		var best measure.Summary
		bestName := ""
		for _, w := range Writers() {
			if s, ok := f.Get(Raw, w.Name, mode); ok && w.Bar && (bestName == "" || s.Ns < best.Ns) {
				best, bestName = s, w.Name
			}
		}
		persisted := []string{"–", "not measured", "–", "not measured"}
		if s, ok := f.Get(Raw, Persisted, mode); ok {
			more, ratio := s.CallerNs-own.CallerNs, s.CPUNs/own.CPUNs
			persisted = []string{report.Number(more), report.Verdict(more <= 10), fmt.Sprintf("%.2f", ratio), report.Verdict(ratio <= 2)}
		}
		t.Row(append([]string{mode, report.Number(own.Ns), bestName + " " + report.Number(best.Ns), fmt.Sprintf("%.2f", own.Ns/best.Ns), report.Verdict(own.Ns <= best.Ns)}, persisted...)...)
	}
	return t
}

func spread(s measure.Summary) string { return report.Spread(s, 1) }

func lostPct(s measure.Summary) string { return report.Count(s.Extra["lost_pct"]) }

// frontTable says which front half of slab.Writer to take when.
func frontTable(f *report.Figures) string {
	at := func(l Load, front string) measure.Summary { return f.At(Fronts, front, l.String()) }
	return "\n### Locked or sharded slabs\n" + report.Of(Loads(),
		report.Column[Load]{Head: "load", Cell: Load.String},
		report.Column[Load]{Head: "locked, ns per line", Cell: func(l Load) string { return spread(at(l, lockedFront)) }},
		report.Column[Load]{Head: "sharded, ns per line", Cell: func(l Load) string { return spread(at(l, shardedFront)) }},
		report.Column[Load]{Head: "sharded ÷ locked in the same round", Cell: func(l Load) string {
			ratio, _ := f.Ratio(measure.Key{Case: Fronts, Library: shardedFront, Mode: l.String()}, measure.Key{Case: Fronts, Library: lockedFront, Mode: l.String()})
			return fmt.Sprintf("%.2f", ratio)
		}},
		report.Column[Load]{Head: "CPU, of the medians", Cell: func(l Load) string { return fmt.Sprintf("%.2f", at(l, shardedFront).CPUNs/at(l, lockedFront).CPUNs) }},
	).Titled("`slab.Writer` with 16 slabs of 1 MiB, filled under a lock, or in 4 shards without one. The counter costs nothing; the file is a `file.File` in the page cache. Under 1.00 the shards are faster.")
}

// bestCombos are the first of ours and the fastest of each other kind, of those
// that lose nothing.
func bestCombos(f *report.Figures) map[comboKind]string {
	best := map[comboKind]string{}
	for _, c := range combos() {
		s, ok := f.Get(File, c.name, File)
		switch b := best[c.kind]; {
		case !ok || c.kind != own && s.Extra["lost_pct"] > 0:
		case b == "" || c.kind != own && s.Ns < f.At(File, b, File).Ns:
			best[c.kind] = c.name
		}
	}
	if best[own] == "" || best[foreign] == "" || best[lent] == "" {
		report.Miss("a rival without losses")
	}
	return best
}

// BestFiles names our combination of a logger and a writer over a file, and the
// best one without this project's parts that loses nothing.
func BestFiles(f *report.Figures) (ours, rival string) {
	best := bestCombos(f)
	return best[own], best[foreign]
}

func fileTable(f *report.Figures) string {
	best := bestCombos(f)
	at := func(name string) measure.Summary { return f.At(File, name, File) }
	t := report.NewTable("logger and writer", "wall ns per line", "CPU ns per line", "allocations (bytes)", "bytes per line", "lines lost, %")
	for _, c := range combos() {
		if _, ok := f.Get(File, c.name, File); !ok && c.kind == own {
			continue // measured where slabs cannot persist
		}
		s := at(c.name)
		t.Row(c.name, spread(s), report.Number(s.CPUNs), report.Allocations(s), report.Number(s.Extra["line_bytes"]), lostPct(s))
	}
	o, b, l := at(best[own]), at(best[foreign]), at(best[lent])
	reached := "reached"
	if o.Ns > 0.80*b.Ns {
		reached = "**not reached**"
	}
	return "\n### Ten goroutines log to a file\n" + t.Titled("Lines of %d bytes through whole loggers into a real file, every line verified in it. Target: %s ≤ 0.80 × the best combination without this project's parts that loses nothing, which is %s: %.2f of its wall time (%s), %.2f of its CPU time, %s %% lost. Of another logger over the same slabs, %s, it takes %.2f and %.2f.",
		LineBytes, best[own], best[foreign], o.Ns/b.Ns, reached, o.CPUNs/b.CPUNs, lostPct(o), best[lent], o.Ns/l.Ns, o.CPUNs/l.CPUNs)
}

func publishedTable(f *report.Figures) string {
	t := report.NewTable("strategy", "ns/op", "published", "allocs/op (bytes)", "published", "MB/s", "published", "lines lost, %")
	for _, r := range publishedRows() {
		s := f.At(Published, r.name, Published)
		ns, allocs, mbs := "–", "–", "–"
		if r.ns > 0 {
			ns, allocs, mbs = report.Number(r.ns), report.Count(r.allocs), report.Number(r.mbs)
		}
		if r.allocs > 0 {
			allocs += " (208)"
		}
		t.Row(r.name, spread(s), ns, report.Allocations(s), allocs, report.Number(1000*publishedBytes/s.Ns), mbs, lostPct(s))
	}
	return "\n### The published table of SlabWriter\n" + t.Titled("%d goroutines write lines of %d bytes to a file, each line verified in it. \"Slab\" is `slab.Writer` here; the published figures are of logf's SlabWriter on an M1 Pro. Compare ratios, not times.", publishedGoroutines, publishedBytes)
}
