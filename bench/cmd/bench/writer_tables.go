package main

import (
	"fmt"

	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/bench/writers"
)

// writerTables makes the tables of all cases. Persisted slabs, which not
// every system has, may be missing in the results; nothing else may.
func writerTables(r *measure.Results) (string, error) {
	sums := r.Summarize()
	text := "\n" + r.Circumstances() + fmt.Sprintf("\nVersions: zerolog %s, zap %s, phuslu/log %s. Raw results: [writers.json](results/writers.json).\n",
		r.Versions["github.com/rs/zerolog"], r.Versions["go.uber.org/zap"], r.Versions["github.com/phuslu/log"])
	text += "\nlogf's own SlabWriter is not among them, because the public module proxy refuses it:\n\n```text\n" + writers.LogfAbsent + "\n```\n" +
		"\n\"Slab design as published\" is what its author's text describes, written anew: a mutex and a copy, full and free slabs through channels, no accounts, no retries.\n"
	for _, part := range []func(*measure.Results, map[measure.Key]measure.Summary) (string, error){rawTables, frontTable, fileTables, publishedTable} {
		made, err := part(r, sums)
		if err != nil {
			return "", err
		}
		text += made
	}
	return text + "\n", nil
}

func rawTables(_ *measure.Results, sums map[measure.Key]measure.Summary) (string, error) {
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

	text := "\n### A Write of 256 bytes\n\n**Against the targets**: `slab.Writer`, all its accounts on, ≤ 1.00 × the best of mutex and bufio, zap's and the published design; persisted slabs, which have to stand a file that is cut under them, cost the caller ≤ 10 ns more and ≤ 2.00 × the CPU time\n\n"
	t := measure.NewTable("goroutines on GOMAXPROCS", "slab, ns", "best of the three", "slab ÷ best", "reached", "persisted − heap for the caller, ns", "reached", "CPU, persisted ÷ heap", "reached")
	for _, mode := range rawModes() {
		own := at(writers.Heap, mode)
		var best measure.Summary
		bestName := ""
		persisted := []string{"–", "not measured", "–", "not measured"}
		for _, w := range present {
			s := at(w.Name, mode)
			if w.Bar && (bestName == "" || s.Ns < best.Ns) {
				best, bestName = s, w.Name
			}
			if w.Name == writers.Persisted {
				more, ratio := s.CallerNs-own.CallerNs, s.CPUNs/own.CPUNs
				persisted = []string{measure.Number(more), verdict(more <= 10), fmt.Sprintf("%.2f", ratio), verdict(ratio <= 2)}
			}
		}
		row := []string{mode, measure.Number(own.Ns), fmt.Sprintf("%s %s", bestName, measure.Number(best.Ns)), fmt.Sprintf("%.2f", own.Ns/best.Ns), verdict(own.Ns <= best.Ns)}
		t.Row(append(row, persisted...)...)
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

// frontTable says which front half of slab.Writer to take when.
func frontTable(r *measure.Results, sums map[measure.Key]measure.Summary) (string, error) {
	t := measure.NewTable("load", "locked, ns per line", "sharded, ns per line", "sharded ÷ locked in the same round", "CPU, of the medians")
	for _, l := range writers.Loads() {
		locked, sharded := frontKey(writers.Locked, l), frontKey(writers.Sharded, l)
		a, okA := sums[locked]
		b, okB := sums[sharded]
		if !okA || !okB {
			return "", fmt.Errorf("%v: %w", l, errMissing)
		}
		ratio, _ := r.Ratio(sharded, locked)
		t.Row(l.String(), spread(a), spread(b), fmt.Sprintf("%.2f", ratio), fmt.Sprintf("%.2f", b.CPUNs/a.CPUNs))
	}
	return "\n### Locked or sharded slabs\n\n`slab.Writer` with 16 slabs of 1 MiB, filled under a lock, or in 4 shards without one. The counter costs nothing; the file is a `file.File` in the page cache. Under 1.00 the shards are faster.\n\n" + t.String(), nil
}

func frontKey(front string, l writers.Load) measure.Key {
	return measure.Key{Case: writers.Fronts, Library: front, Mode: l.String()}
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
