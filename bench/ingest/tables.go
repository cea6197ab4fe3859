package ingest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/bench/internal/plot"
	"github.com/rollway/rollway/bench/internal/report"
)

// The targets.
const (
	maxOfNaive     = 0.2  // ns of a request of ours ÷ ns of the article's first version
	maxAllocs      = 2    // of a request
	maxPerEvent    = 0.01 // allocations: what is below is none
	maxP99Buffered = 10 * time.Millisecond
	maxP99Synced   = 25 * time.Millisecond
)

// FilePlot is the name of the picture of the servers' memory.
const FilePlot = Kind + ".svg"

// Report makes the tables and the picture.
func Report(r *Results) report.Report {
	f := report.FiguresOf(r.Results)
	text := fmt.Sprintf("\n%s\nCommand: `%s`; raw results: %s.\n", report.Circumstances(&r.Results), r.Command, report.Raw(Kind+".json"))
	for _, part := range Parts() {
		if o, ok := r.Origins[part]; ok && o != r.origin() {
			text += fmt.Sprintf("Of that, %s by `%s` on %s, commit %s.\n", part, o.Command, o.Date, o.Commit)
		}
	}
	text += benchmarkTable(f) + requestTables(f) + enrichmentTable(f) + loadTables(r.Runs) + rivalTables(r.Rivals, r.LeftOut) + saturationTable(r.Saturated) + "\n"
	return report.Report{Text: text, Pictures: map[string]string{"results/" + FilePlot: plotMemory(r.Runs)}}
}

// benchmarkTable has the article's own benchmark.
func benchmarkTable(f *report.Figures) string {
	t := report.NewTable("version", "article: ns, bytes, allocations", "here: µs, median (least to most)", "bytes allocated", "allocations")
	calls := 0
	for _, s := range f.Samples {
		if s.Case == CaseBenchmark && s.Library == Naive {
			calls += s.Ops
		}
	}
	before, after := f.At(CaseBenchmark, Naive, serial), f.At(CaseBenchmark, Pooled, serial)
	t.Row(Naive, "145000, 128 KB, 420", report.Spread(before, 1e3), report.Whole(before.Bytes), report.Count(before.Allocs))
	t.Row(Pooled, "89000, 62 KB, 210", report.Spread(after, 1e3), report.Whole(after.Bytes), report.Count(after.Allocs))
	less := func(before, after float64) string { return fmt.Sprintf("%+.0f %%", 100*(after/before-1)) }
	t.Row("after ÷ before", "−38 %, −51 %, −50 %", less(before.Ns, after.Ns), less(before.Bytes, after.Bytes), less(before.Allocs, after.Allocs))
	return t.Titled("**The article's benchmark**: 100 events in memory, decoded, normalized, built and encoded, %d times each", calls)
}

func requestTables(f *report.Figures) string {
	names := []string{Naive, Pooled, Buffered, Synced}
	of := func(events int, name string) measure.Summary { return f.At(sizeCase(events), name, serial) }
	many := Sizes()[0]
	t := report.NewTargets("here")
	ratio := of(many, Buffered).Ns / of(many, Naive).Ns
	t.Add(fmt.Sprintf("ns of %s ÷ ns of the article's first version, %s", Buffered, sizeCase(many)), fmt.Sprintf("%.3f", ratio), fmt.Sprintf("≤ %.1f", maxOfNaive), ratio <= maxOfNaive)
	for _, name := range names[2:] {
		allocs := of(many, name).Allocs
		per := (allocs - of(1, name).Allocs) / float64(many-1)
		t.Add(fmt.Sprintf("allocations of a request of %s, %s", sizeCase(many), name), report.Count(allocs), fmt.Sprintf("≤ %d", maxAllocs), allocs < maxAllocs+maxPerEvent)
		t.Add("allocations of each event, "+name, fmt.Sprintf("%.3f", per), "0", per < maxPerEvent)
	}
	text := t.Titled("**A request against the targets**")
	for _, events := range Sizes() {
		column := func(head string, cell func(measure.Summary) string) report.Column[string] {
			return report.Column[string]{Head: head, Cell: func(name string) string { return cell(of(events, name)) }}
		}
		text += report.Of(names,
			report.Column[string]{Head: "pipeline", Cell: func(name string) string { return name }},
			column("µs, median (least to most)", func(s measure.Summary) string { return report.Spread(s, 1e3) }),
			column("CPU µs", func(s measure.Summary) string { return report.Number(s.CPUNs / 1e3) }),
			column("÷ first version", func(s measure.Summary) string { return report.Number(s.Ns / of(events, Naive).Ns) }),
			column("allocations", func(s measure.Summary) string { return report.Count(s.Allocs) }),
			column("bytes allocated", func(s measure.Summary) string { return report.Whole(s.Bytes) }),
			column("noisy samples used", noisyUsed),
		).Titled("**A request of %s, without net/http**", sizeCase(events))
	}
	return text
}

func noisyUsed(s measure.Summary) string {
	return fmt.Sprintf("%d of %d", s.NoisyButUsedSamples, s.Samples)
}

// enrichmentTable is what each configuration adds to a request, none if it was
// not measured: against a request of the same size where nothing can enrich.
func enrichmentTable(f *report.Figures) string {
	many := Sizes()[0]
	t := report.NewTable("configuration", "µs, median (least to most)", "more for each event, ns", "allocations", "noisy samples used")
	some := false
	for _, e := range enrichments() {
		s, ok := f.Get(caseEnriched, e.name, serial)
		if !ok {
			continue
		}
		some = true
		more := (s.Ns - f.At(sizeCase(many), Buffered, serial).Ns) / float64(many)
		t.Row(e.name, report.Spread(s, 1e3), report.Whole(more), report.Count(s.Allocs), noisyUsed(s))
	}
	if !some {
		return ""
	}
	return t.Titled("**What enrichment costs a request of %s**, against %s above", sizeCase(many), Buffered)
}

func (run Run) load() string {
	return fmt.Sprintf("%d requests/s of %s", run.Rate, sizeCase(run.Events))
}

func seconds(s float64) string { return report.Number(s) + " s" }

// A column is one of a table of runs.
type column = report.Column[Run]

func countColumn(head string, of func(Run) int) column {
	return column{Head: head, Cell: func(r Run) string { return fmt.Sprint(of(r)) }}
}

func latencyColumn(head string, of func(Latency) time.Duration) column {
	return column{Head: head, Cell: func(r Run) string { return report.Millis(of(r.Sent.Latency)) }}
}

// foundColumn has what was found of a server that stores.
func foundColumn(head, none string, of func(*Found) string) column {
	return column{Head: head, Cell: func(r Run) string {
		if r.Found == nil {
			return none
		}
		return of(r.Found)
	}}
}

var (
	serverColumn   = column{Head: "server", Cell: func(r Run) string { return r.Server }}
	errorsColumn   = countColumn("errors", func(r Run) int { return r.Sent.Errors })
	residentColumn = column{Head: "resident, most", Cell: func(r Run) string { return report.MiB(r.Resident) }}
	coresColumn    = column{Head: "CPU, cores", Cell: func(r Run) string { return report.Number(r.CPU) }}
	p50Column      = latencyColumn("p50", func(l Latency) time.Duration { return l.P50 })
	p95Column      = latencyColumn("p95", func(l Latency) time.Duration { return l.P95 })
	p99Column      = latencyColumn("p99", func(l Latency) time.Duration { return l.P99 })
)

// loadTables has the tables of the article's servers and ours.
func loadTables(runs []Run) string {
	if len(runs) == 0 {
		report.Miss("servers under load")
	}
	text := loadTargets(runs).Titled("**Servers under load against the targets**, runs of %s on %d connections, the first %s of each not timed",
		seconds(runs[0].Seconds), runs[0].Conns, seconds(runs[0].Warm))
	for _, l := range Loads() {
		of := slices.DeleteFunc(slices.Clone(runs), func(r Run) bool { return r.Rate != l.Rate || r.Events != l.Events })
		text += report.Of(of, serverColumn,
			column{Head: "sent of due", Cell: func(r Run) string { return fmt.Sprintf("%d of %d", r.Sent.Sent, r.Sent.Requests) }},
			countColumn("acknowledged", func(r Run) int { return r.Sent.Acknowledged }), errorsColumn,
			latencyColumn("mean", func(l Latency) time.Duration { return l.Mean }), p50Column, p95Column, p99Column,
			latencyColumn("p99.9", func(l Latency) time.Duration { return l.P999 }),
			latencyColumn("max", func(l Latency) time.Duration { return l.Max }),
		).Titled("**%d requests/s of %s**: from when a request was due to its answer", l.Rate, sizeCase(l.Events))
		text += "\n" + report.Of(of, serverColumn, coresColumn,
			column{Head: "generator's", Cell: func(r Run) string { return report.Number(r.GenCPU) }},
			column{Head: "others', % of a core", Cell: func(r Run) string { return report.Whole(r.Others) }}, residentColumn,
			column{Head: "heap, most", Cell: func(r Run) string { return report.MiB(r.HeapPeak) }},
			countColumn("GC cycles", func(r Run) int { return r.GCCycles }),
			column{Head: "sent late by, p99", Cell: func(r Run) string { return report.Millis(r.Sent.Lag.P99) }},
			foundColumn("events acknowledged", "stores nothing", func(f *Found) string { return fmt.Sprint(f.Acknowledged) }),
			foundColumn("missing", "–", func(f *Found) string { return fmt.Sprint(f.Missing) }),
			foundColumn("twice", "–", func(f *Found) string { return fmt.Sprint(f.Repeated) }),
			foundColumn("not acknowledged, there", "–", func(f *Found) string { return fmt.Sprint(f.Unasked) }),
		).String()
	}
	return text + fmt.Sprintf("\n![resident memory of the servers over time](results/%s)\n", FilePlot)
}

func loadTargets(runs []Run) report.Targets {
	t := report.NewTargets("here")
	for _, r := range runs {
		limit := map[string]time.Duration{Buffered: maxP99Buffered, BufferedTLS: maxP99Buffered, Synced: maxP99Synced, SyncedTLS: maxP99Synced}[r.Server]
		if limit == 0 {
			continue
		}
		where := r.Server + ", " + r.load()
		t.Add("p99, "+where, report.Millis(r.Sent.Latency.P99), "≤ "+report.Millis(limit), r.Sent.Latency.P99 <= limit)
		t.Add("errors, "+where, fmt.Sprint(r.Sent.Errors), "0", r.Sent.Errors == 0)
		if f := r.Found; f != nil {
			wrong := f.Missing + f.Repeated + f.Foreign
			t.Add("events acknowledged and missing, there twice, or never sent, "+where, fmt.Sprintf("%d of %d", wrong, f.Acknowledged), "0", wrong == 0 && f.Acknowledged > 0)
		}
	}
	return t
}

// plotMemory draws the resident memory of the servers over time. A curve has at
// most a dozen points, each the most of its part of the run: as many as can be
// told apart.
func plotMemory(runs []Run) string {
	const points = 12
	var panels []plot.LinePanel
	for _, l := range Loads() {
		panel := plot.LinePanel{Title: fmt.Sprintf("%d requests/s of %s", l.Rate, sizeCase(l.Events))}
		for _, r := range runs {
			if r.Rate != l.Rate || r.Events != l.Events {
				continue
			}
			line := plot.Line{Name: r.Server}
			for i := range points {
				part := r.Series[i*len(r.Series)/points : (i+1)*len(r.Series)/points]
				most := int64(0)
				for _, p := range part {
					most = max(most, p.Resident)
				}
				if len(part) > 0 {
					end := r.Seconds * float64(i+1) / points // the same for all servers
					line.X, line.Y = append(line.X, end), append(line.Y, float64(most)/(1<<20))
				}
			}
			panel.Lines = append(panel.Lines, line)
		}
		panels = append(panels, panel)
	}
	return plot.Lines("Resident memory of the servers", "seconds", "MiB", panels)
}

// Best returns the run of a server that held the most of a load, or nil.
func Best(runs []Run, name string, events int) *Run {
	var found *Run
	for i := range runs {
		if r := &runs[i]; r.Server == name && r.Events == events && r.holds() && (found == nil || r.Rate > found.Rate) {
			found = r
		}
	}
	return found
}

// rivalTables has the tables of ours beside the rivals, if they were measured.
func rivalTables(runs []Run, left []string) (text string) {
	if len(runs) > 0 {
		text = rivalTargets(runs).Titled("**Beside other collectors, by OTLP, against the targets**, runs of %s on %d connections", seconds(runs[0].Seconds), runs[0].Conns)
	}
	for _, l := range Loads() {
		of := slices.DeleteFunc(slices.Clone(runs), func(r Run) bool { return r.Events != l.Events })
		if len(of) == 0 {
			continue
		}
		text += report.Of(of, serverColumn,
			column{Head: "what an answer promises", Cell: func(r Run) string { return promises[r.Server] }},
			countColumn("requests/s", func(r Run) int { return r.Rate }),
			column{Head: "acknowledged", Cell: func(r Run) string { return fmt.Sprintf("%d of %d", r.Sent.Acknowledged, r.Sent.Requests) }},
			errorsColumn, p50Column, p95Column, p99Column, coresColumn,
			column{Head: "requests per CPU second", Cell: func(r Run) string { return report.Whole(r.PerCore()) }}, residentColumn,
			foundColumn("missing of events acknowledged", "stores nothing", func(f *Found) string { return fmt.Sprintf("%d of %d", f.Missing, f.Acknowledged) }),
			foundColumn("twice", "–", func(f *Found) string { return fmt.Sprint(f.Repeated) }),
		).Titled("**%d requests/s of %s by OTLP over HTTP, or the part of that which a server holds**", l.Rate, sizeCase(l.Events))
	}
	for _, reason := range left {
		text += fmt.Sprintf("\nLeft out: %s\n", strings.Join(strings.Fields(reason), " "))
	}
	return text
}

// rivalTargets compares ours with each rival that promises the same or less.
func rivalTargets(runs []Run) report.Targets {
	t := report.NewTargets("here")
	for _, l := range Loads() {
		for _, pair := range []struct{ own, rival string }{
			{Buffered, OtelFile}, {Buffered, OtelMemory}, {Buffered, Rotel}, {Synced, OtelSynced},
		} {
			where := fmt.Sprintf("requests per CPU second, %s ÷ %s, %s a request", pair.own, pair.rival, sizeCase(l.Events))
			own, rival := Best(runs, pair.own, l.Events), Best(runs, pair.rival, l.Events)
			switch {
			case own == nil:
				t.Add(where, "ours held no load", "> 1", false)
			case rival != nil:
				ratio := own.PerCore() / rival.PerCore()
				t.Add(where, fmt.Sprintf("%.2f", ratio), "> 1", ratio > 1)
			}
		}
	}
	return t
}

// saturationTable has what servers take at most.
func saturationTable(list []Saturation) string {
	if len(list) == 0 {
		return ""
	}
	t := report.NewTable("server", "what an answer promises", "protocol", "requests per CPU second", "requests/s", "server's cores", "generator's", "errors")
	for _, p := range saturatedProtocols() {
		for _, name := range saturatedServers() {
			of := slices.DeleteFunc(slices.Clone(list), func(s Saturation) bool { return s.Server != name || s.Protocol != p })
			if len(of) == 0 {
				continue
			}
			errs := 0
			for _, s := range of {
				errs += s.Errors
			}
			// middle is the median, with the least and the most.
			middle := func(format string, value func(Saturation) float64) string {
				var values []float64
				for _, s := range of {
					values = append(values, value(s))
				}
				slices.Sort(values)
				return fmt.Sprintf(format+" ("+format+"–"+format+")", values[len(values)/2], values[0], values[len(values)-1])
			}
			t.Row(name, promises[name], string(p), middle("%.0f", Saturation.perCore), middle("%.0f", func(s Saturation) float64 { return float64(s.Acknowledged) / s.Seconds }),
				middle("%.2f", func(s Saturation) float64 { return s.CPUSeconds / s.Seconds }), middle("%.2f", func(s Saturation) float64 { return s.GenCPU }), fmt.Sprint(errs))
		}
	}
	return t.Titled("**At saturation**: on each of %d connections the next request as soon as the one before is answered, %s a run; medians of %d interleaved rounds (least to most)",
		list[0].Conns, seconds(list[0].Seconds), SaturationRounds)
}
