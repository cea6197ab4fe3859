package direct

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/bench/internal/plot"
	"github.com/rollway/rollway/bench/internal/report"
)

// PublishedDropsPct is which share of the records the publication dropped.
const PublishedDropsPct = 0.035

// The bars of the headline.
const (
	barMBs       = 300
	barCallP99   = 200 * time.Microsecond
	barCores     = 0.15
	barGRPC      = 1.15 // p99 with logging ÷ p99 without
	barWriteP99  = 15 * time.Millisecond
	barDiskBytes = 4 << 30
)

// tables makes the tables of the headline. mallocs is how many allocations a
// record costs without gRPC around it.
func (h *Headlines) tables(mallocs float64) string {
	if len(h.Runs) < 3 {
		report.Miss("the gRPC server")
	}
	long := h.Long()
	all, controls := apart(h.Runs[:len(h.Runs)-1])
	pairs := quietPairs(all)
	ratios := pairRatios(pairs)
	text := fmt.Sprintf("\n### A gRPC server that logs 300 MB a second\n\n%s, commit %s, %s on %s (%s, %s, %d cores). Command: `%s`; raw results: %s.\n",
		h.Date, h.Commit, h.Go, h.Machine.Arch, h.Machine.CPU, h.Machine.System, h.Machine.Cores, h.Command, report.Raw(FileHeadline))
	if long.Others > measure.NoisyPct {
		text += fmt.Sprintf("**Other programs used %.0f %% of a core during the long run, of %d %% that there are: its times are theirs as well.**\n", long.Others, 100*h.Machine.Cores)
	}
	text += targets(all, long, ratios, mallocs).Titled("**Against the targets**")
	text += fmt.Sprintf("\n![MB/s, memory and drops over time](results/%s)\n", FilePlot)
	text += longTable(long).Titled("**The long run: %s, %d requests**", report.Seconds(long.Seconds), long.Requests)
	return text + pairTable(pairs, controls, ratios).Titled("**Logging on and off, %d interleaved pairs of %s**: from when a request was due to its answer; medians of %d pairs, %s",
		len(all)/2, report.Seconds(pairs[0].Seconds), len(ratios), noiseOf(all, pairs))
}

// Long is the long run.
func (h *Headlines) Long() Run { return h.Runs[len(h.Runs)-1] }

// FilePlot is the name of the picture of the long run.
const FilePlot = Kind + "-headline.svg"

// plot draws the long run over time beside what the publication reports.
func (h *Headlines) plot() string {
	r := h.Long()
	panel := func(title string, published float64, value func(Point) float64) plot.LinePanel {
		ours := plot.Line{Name: "slab.Writer"}
		for _, p := range r.Server.Series {
			ours.X, ours.Y = append(ours.X, p.Second), append(ours.Y, value(p))
		}
		return plot.LinePanel{Title: title, Lines: []plot.Line{ours, {Name: "published", X: []float64{0, r.Seconds}, Y: []float64{published, published}}}}
	}
	return plot.Over("A gRPC server that logs 300 MB a second: slab.Writer, and the published direct-I/O logger", "seconds", []plot.LinePanel{
		panel("MB/s written", 300, func(p Point) float64 { return p.MBs }),
		panel("resident memory, MB", 5500, func(p Point) float64 { return float64(p.Resident) / 1e6 }),
		panel("records dropped, %", PublishedDropsPct, func(p Point) float64 { return 100 * float64(p.Dropped) / float64(max(1, r.Requests)) }),
	})
}

// apart puts the pairs apart from the controls.
func apart(runs []Run) (pairs, controls []Run) {
	for _, r := range runs {
		switch {
		case r.Disk || r.Copies:
			controls = append(controls, r)
		default:
			pairs = append(pairs, r)
		}
	}
	return pairs, controls
}

// enoughPairs is how many pairs must be quiet for the noisy ones to be left out.
const enoughPairs = 5

// quietPairs leaves out the pairs in which other programs used much, if enough
// others remain.
func quietPairs(all []Run) []Run {
	var quiet []Run
	for i := 0; i+1 < len(all); i += 2 {
		if all[i].Others <= measure.NoisyPct && all[i+1].Others <= measure.NoisyPct {
			quiet = append(quiet, all[i], all[i+1])
		}
	}
	if len(quiet) < 2*enoughPairs {
		return all
	}
	return quiet
}

func noiseOf(all, used []Run) string {
	most := 0.0
	for _, r := range used {
		most = max(most, r.Others)
	}
	return fmt.Sprintf("%d left out as noisy; in those used other programs took up to %.0f %% of a core", (len(all)-len(used))/2, most)
}

// OnOff is the median of p99 with logging ÷ p99 without, of the pairs that the
// tables use.
func (h *Headlines) OnOff() float64 {
	all, _ := apart(h.Runs[:len(h.Runs)-1])
	return measure.Median(pairRatios(quietPairs(all)))
}

// pairRatios is p99 with logging ÷ p99 without, of each pair.
func pairRatios(pairs []Run) []float64 {
	var ratios []float64
	for i := 0; i+1 < len(pairs); i += 2 {
		on, off := pairs[i], pairs[i+1]
		if !on.Logging {
			on, off = off, on
		}
		ratios = append(ratios, float64(on.GRPC.P99)/float64(off.GRPC.P99))
	}
	return ratios
}

func targets(all []Run, long Run, ratios []float64, mallocs float64) report.Targets {
	t := report.NewTargets("here")
	given := long.Server.Accepted + long.Server.Dropped // the requests that warm the server up are among them
	mb := float64(long.Verified.Bytes-long.Verified.Padding) / 1e6 / long.Seconds * float64(long.Requests) / float64(max(1, given))
	dropped, lost := long.Server.Dropped, long.Verified.Lost
	for _, r := range all {
		dropped += r.Server.Dropped
		lost += r.Verified.Lost
	}
	cores := long.Server.CPU.Logger + long.Server.CPU.Flusher
	ratio := measure.Median(ratios)
	t.Add("written, long run", report.Number(mb)+" MB/s", fmt.Sprintf("≥ %d", barMBs), mb >= barMBs)
	t.Add("records dropped, all runs", fmt.Sprint(dropped), "0", dropped == 0)
	t.Add("records lost, all runs", fmt.Sprint(lost), "0", lost == 0)
	t.Add("LogBytes p99, long run", report.Millis(long.Server.Call.P99), "≤ "+report.Millis(barCallP99), long.Server.Call.P99 <= barCallP99)
	t.Add("logger CPU (LogBytes and flusher), long run", report.Number(cores)+" cores", fmt.Sprintf("≤ %.2f", barCores), cores <= barCores)
	t.Add(fmt.Sprintf("gRPC p99 with ÷ without logging, median of %d pairs", len(ratios)), report.Number(ratio), fmt.Sprintf("≤ %.2f", barGRPC), ratio <= barGRPC)
	t.Add("allocations a record, by difference", fmt.Sprintf("%.3f", mallocs), "0", mallocs < 0.005)
	t.Add("write p99, long run", report.Millis(float64(long.Server.Write.P99)), "≤ "+report.Millis(float64(barWriteP99)), long.Server.Write.P99 <= barWriteP99)
	t.Add("log files at a time, bytes", report.Number(float64(long.DiskPeak)/1e9)+" GB", "≤ 4 GiB", long.DiskPeak <= barDiskBytes)
	return t
}

// longTable has the figures that the publication reports, with its own.
func longTable(r Run) *report.Table {
	s, v := r.Server, r.Verified
	t := report.NewTable("figure", "published (4 cores, 10 min)", "here")
	ms := report.Millis[time.Duration]
	share := func(cores float64) string { return report.Number(100*cores) + " %" }
	given := s.Accepted + s.Dropped
	t.Row("drop rate", "0.035 %", report.Percent(float64(s.Dropped), float64(given)))
	t.Row("accepted, and lost", "not looked for", fmt.Sprintf("%d, %d", v.Accepted, v.Lost))
	t.Row("records verified by number and checksum", "none", fmt.Sprintf("%d in %d files; torn %d, twice %d, NULs %d", v.Found, v.Files, v.Torn, v.Repeated, v.NULs))
	t.Row("white space added to the files", "NULs to 4 KiB", report.Percent(float64(v.Padding), float64(v.Bytes)))
	t.Row("write latency mean / p95 / p99 / max", "25.27 / 45 / 65 / 479 ms", strings.Join([]string{ms(s.Mean), ms(s.Write.P95), ms(s.Write.P99), ms(s.Write.Max)}, " / "))
	t.Row("LogBytes p50 / p95 / p99 / p99.9 / max", "~0.0001 ms fast path", strings.Join([]string{ms(s.Call.P50), ms(s.Call.P95), ms(s.Call.P99), ms(s.Call.P999), ms(s.Call.Max)}, " / "))
	t.Row("gRPC p50 / p75 / p95 / p99 / max", "0.69 / 0.78 / 0.78 / 0.87 / 474 ms", strings.Join([]string{ms(r.GRPC.P50), ms(r.GRPC.P75), ms(r.GRPC.P95), ms(r.GRPC.P99), ms(r.GRPC.Max)}, " / "))
	t.Row("CPU of one core: handlers", "40–50 %", fmt.Sprintf("%s, and %s to make the records", share(s.CPU.Handlers), share(s.CPU.Payload)))
	t.Row("CPU of one core: logger writes", "10–15 %", share(s.CPU.Logger))
	t.Row("CPU of one core: flusher", "5–10 %", share(s.CPU.Flusher))
	t.Row("CPU of one core: all of the server", "64 %", fmt.Sprintf("%s (%d samples)", share(s.CPU.Total), s.CPU.Samples))
	t.Row("memory: buffers", "64 + 64 MB, 256 MB aligned, ~30 MB newlines", report.MiB((s.Memory.Buffers)))
	t.Row("memory: records in the handlers", "~30 MB", report.MiB((s.Memory.Payload)))
	t.Row("memory: Go heap in use / stacks", "–", report.MiB((s.Memory.Heap))+" / "+report.MiB((s.Memory.Stacks)))
	t.Row("memory: resident, the most", "5.5 GB", report.MiB((s.Memory.Resident)))
	t.Row("GC cycles a minute", "1.2 and 4.5 (two places of the text)", report.Number(float64(s.GC.Cycles)/r.Seconds*60)+s.GC.with())
	t.Row("GC pauses: all / longest", "1.8 ms in two minutes", ms(s.GC.Pause)+" / "+ms(s.GC.MaxPause))
	t.Row("allocated", "~1 MB/s", report.Number(s.GC.AllocMBs)+" MB/s")
	if by := s.GC.By; len(by) > 0 {
		t.Row("allocated by, MB/s, the logger and those that allocated most", "–", report.Join(by[:min(len(by), 4)], "; ", func(a Allocator) string {
			return a.Function[strings.LastIndexByte(a.Function, '/')+1:] + " " + report.Number(a.MBs)
		}))
	}
	t.Row("CPU of one core: other programs", "–", report.Percent(r.Others, 100))
	t.Row("CPU of one core: reading back, another process", "–", share(r.Verifier))
	return t
}

// with says at which GOGC the cycles were, if that was noted.
func (g GC) with() string {
	if g.Percent == 0 {
		return ""
	}
	return fmt.Sprintf(" with GOGC=%d", g.Percent)
}

func pairTable(pairs, controls []Run, ratios []float64) *report.Table {
	t := report.NewTable("logging", "p50", "p75", "p95", "p99", "max", "p99 by pair")
	var on, off []Run
	for _, r := range pairs {
		if r.Logging {
			on = append(on, r)
		} else {
			off = append(off, r)
		}
	}
	line := func(name string, runs []Run) {
		row := []string{name}
		of := func(figure func(Quantiles) time.Duration) (all []float64) {
			for _, r := range runs {
				all = append(all, float64(figure(r.GRPC)))
			}
			return all
		}
		for _, figure := range []func(Quantiles) time.Duration{
			func(q Quantiles) time.Duration { return q.P50 }, func(q Quantiles) time.Duration { return q.P75 },
			func(q Quantiles) time.Duration { return q.P95 }, func(q Quantiles) time.Duration { return q.P99 },
			func(q Quantiles) time.Duration { return q.Max },
		} {
			row = append(row, report.Millis(measure.Median(of(figure))))
		}
		var each []string
		for _, p99 := range of(func(q Quantiles) time.Duration { return q.P99 }) {
			each = append(each, report.Number(p99/1e6))
		}
		t.Row(append(row, strings.Join(each, " "))...)
	}
	line("on", on)
	line("off", off)
	isDisk := func(r Run) bool { return r.Disk }
	copies := slices.DeleteFunc(slices.Clone(controls), isDisk)
	disk := slices.DeleteFunc(slices.Clone(controls), func(r Run) bool { return !isDisk(r) })
	if len(disk) > 0 {
		line("off, while another process writes as much to the disk", disk)
	}
	if len(copies) > 0 {
		line("off, each record copied once in memory", copies)
	}
	var each []string
	for _, ratio := range ratios {
		each = append(each, report.Number(ratio))
	}
	t.Row("on ÷ off", "", "", "", report.Number(measure.Median(ratios)), "", strings.Join(each, " "))
	return t
}
