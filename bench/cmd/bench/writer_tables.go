package main

import (
	"fmt"

	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/bench/writers"
)

// writerTables makes the tables of the three cases. Persisted slabs, which not
// every system has, may be missing in the results; nothing else may.
func writerTables(r *measure.Results) (string, error) {
	sums := r.Summarize()
	text := "\n" + r.Circumstances() + fmt.Sprintf("\nVersions: zerolog %s, zap %s, phuslu/log %s. Raw results: [writers.json](results/writers.json).\n",
		r.Versions["github.com/rs/zerolog"], r.Versions["go.uber.org/zap"], r.Versions["github.com/phuslu/log"])
	text += "\nlogf's own SlabWriter is not among them, because it cannot be had; the go command says:\n\n```text\n" + writers.LogfAbsent + "\n```\n" +
		"\n\"Slab design as published\" is what its author's text describes, written anew: a mutex and a copy, full and free slabs through channels, no accounts, no retries.\n"
	for _, part := range []func(*measure.Results, map[measure.Key]measure.Summary) (string, error){rawTables, fileTables, publishedTable} {
		made, err := part(r, sums)
		if err != nil {
			return "", err
		}
		text += made
	}
	return text + "\n", nil
}

func rawTables(r *measure.Results, sums map[measure.Key]measure.Summary) (string, error) {
	var present []writers.Writer
	for _, w := range allWriters() {
		found := 0
		for _, mode := range rawModes() {
			if _, ok := sums[rawKey(w.Name, mode)]; ok {
				found++
			}
		}
		if found == len(rawModes()) {
			present = append(present, w)
		} else if found > 0 || w.Name != writers.Persisted {
			return "", fmt.Errorf("%s has %d of %d modes: %w", w.Name, found, len(rawModes()), errMissing)
		}
	}
	at := func(name, mode string) measure.Summary {
		return sums[rawKey(name, mode)]
	}

	text := "\n### A Write of 256 bytes\n\n**Against the targets**: `slab.Writer`, all its accounts on, ≤ 1.00 × the best of mutex and bufio, zap's and the published design; persisted ≤ 1.10 × heap, by the median of the rounds' own ratios\n\n"
	t := measure.NewTable("goroutines on GOMAXPROCS", "slab, ns", "best of the three", "slab ÷ best", "reached", "persisted ÷ heap in the same round", "of the medians", "reached")
	for _, mode := range rawModes() {
		own := at(writers.Heap, mode)
		var best measure.Summary
		bestName, paired, ofMedians, persistedVerdict := "", "–", "–", "not measured"
		for _, w := range present {
			if s := at(w.Name, mode); w.Bar && (bestName == "" || s.Ns < best.Ns) {
				best, bestName = s, w.Name
			}
			if w.Name == writers.Persisted {
				ratio, _ := r.Ratio(rawKey(w.Name, mode), rawKey(writers.Heap, mode))
				paired, persistedVerdict = fmt.Sprintf("%.2f", ratio), verdict(ratio <= 1.10)
				ofMedians = fmt.Sprintf("%.2f", at(w.Name, mode).Ns/own.Ns)
			}
		}
		t.Row(mode, measure.Number(own.Ns), fmt.Sprintf("%s %s", bestName, measure.Number(best.Ns)), fmt.Sprintf("%.2f", own.Ns/best.Ns), verdict(own.Ns <= best.Ns), paired, ofMedians, persistedVerdict)
	}
	text += t.String()

	for _, table := range []struct {
		title string
		cell  func(measure.Summary) string
	}{
		{"ns per line until everything is through: median (least to most)", spread},
		{"ns per line for the callers alone", func(s measure.Summary) string { return measure.Number(s.CallerNs) }},
		{"CPU ns per line", func(s measure.Summary) string { return measure.Number(s.CPUNs) }},
		{"allocations per line (bytes)", allocations},
		{"lines lost, %", lostPct},
	} {
		head := append([]string{"writer"}, rawModes()...)
		t := measure.NewTable(head...)
		for _, w := range present {
			row := []string{w.Name}
			for _, mode := range rawModes() {
				row = append(row, table.cell(at(w.Name, mode)))
			}
			t.Row(row...)
		}
		text += "\n**" + table.title + "**\n\n" + t.String()
	}
	return text, nil
}

func rawKey(writer, mode string) measure.Key {
	return measure.Key{Case: writers.Raw, Library: writer, Mode: mode}
}

// allWriters is writers.Writers with the persisted one whether or not this
// build has it: results may be of another.
func allWriters() []writers.Writer {
	all := writers.Writers()
	if !writers.CanPersist() {
		all = append(all, writers.Writer{Name: writers.Persisted, Own: true})
	}
	return all
}

func rawModes() []string {
	var modes []string
	for _, m := range writers.RawModes() {
		modes = append(modes, m.String())
	}
	return modes
}

func verdict(reached bool) string {
	if reached {
		return "yes"
	}
	return "**no**"
}

func spread(s measure.Summary) string {
	return fmt.Sprintf("%s (%s–%s)", measure.Number(s.Ns), measure.Number(s.MinNs), measure.Number(s.MaxNs))
}

func lostPct(s measure.Summary) string { return measure.Count(s.Extra["lost_pct"]) }

func fileTables(_ *measure.Results, sums map[measure.Key]measure.Summary) (string, error) {
	t := measure.NewTable("logger and writer", "wall ns per line", "CPU ns per line", "allocations (bytes)", "bytes per line", "lines lost, %")
	var own, best, lent measure.Summary
	ownName, bestName, lentName := "", "", ""
	for _, c := range writers.Combos() {
		s, ok := sums[measure.Key{Case: writers.File, Library: c.Name, Mode: writers.File}]
		if !ok {
			if c.Own && ownName != "" {
				continue // measured where slabs cannot persist
			}
			return "", fmt.Errorf("%s: %w", c.Name, errMissing)
		}
		t.Row(c.Name, spread(s), measure.Number(s.CPUNs), allocations(s), measure.Number(s.Extra["line_bytes"]), lostPct(s))
		switch {
		case c.Own && ownName == "":
			own, ownName = s, c.Name
		case c.Own || c.Floor || s.Extra["lost_pct"] > 0:
		case c.Lent && (lentName == "" || s.Ns < lent.Ns):
			lent, lentName = s, c.Name
		case !c.Lent && (bestName == "" || s.Ns < best.Ns):
			best, bestName = s, c.Name
		}
	}
	if bestName == "" || lentName == "" {
		return "", fmt.Errorf("no rival without losses: %w", errMissing)
	}
	text := fmt.Sprintf("\n### Ten goroutines log to a file\n\nLines of %d bytes through whole loggers into a real file, every line verified in it. Target: %s ≤ 0.80 × the best combination without this project's parts that loses nothing, which is %s: %.2f of its wall time (%s), %.2f of its CPU time, %s %% lost. Of another logger over the same slabs, %s, it takes %.2f and %.2f.\n\n",
		writers.LineBytes, ownName, bestName, own.Ns/best.Ns, reachedWord(own.Ns <= 0.80*best.Ns), own.CPUNs/best.CPUNs, lostPct(own),
		lentName, own.Ns/lent.Ns, own.CPUNs/lent.CPUNs)
	return text + t.String(), nil
}

func reachedWord(reached bool) string {
	if reached {
		return "reached"
	}
	return "**not reached**"
}

func publishedTable(_ *measure.Results, sums map[measure.Key]measure.Summary) (string, error) {
	t := measure.NewTable("strategy", "ns/op", "published", "allocs/op (bytes)", "published", "MB/s", "published", "lines lost, %")
	for _, row := range writers.PublishedRows() {
		s, ok := sums[measure.Key{Case: writers.Published, Library: row.Name, Mode: writers.Published}]
		if !ok {
			return "", fmt.Errorf("%s: %w", row.Name, errMissing)
		}
		ns, allocs, mbs := "–", "–", "–"
		if row.Ns > 0 {
			ns, allocs, mbs = measure.Number(row.Ns), measure.Count(row.Allocs), measure.Number(row.MBs)
			if row.Allocs > 0 {
				allocs += " (208)"
			}
		}
		t.Row(row.Name, spread(s), ns, allocations(s), allocs, measure.Number(1000*writers.PublishedBytes/s.Ns), mbs, lostPct(s))
	}
	return fmt.Sprintf("\n### The published table of SlabWriter\n\n%d goroutines write lines of %d bytes to a file, each line verified in it. \"Slab\" is `slab.Writer` here; the published figures are of logf's SlabWriter on an M1 Pro. Compare ratios, not times.\n\n",
		writers.PublishedGoroutines, writers.PublishedBytes) + t.String(), nil
}
