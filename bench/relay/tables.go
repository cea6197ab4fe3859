package relay

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/bench/internal/plot"
	"github.com/rollway/rollway/bench/internal/report"
)

const perGiB = float64(1<<30) / 1e6 // ns for each byte to ms for a GiB

// CPU is the relay's time of a processor for a GiB, in milliseconds.
func CPU(s measure.Summary) float64 { return s.CPUNs * perGiB }

func mbps(s measure.Summary) float64 { return 1000 / s.Ns }

// Report makes the measured part of the document, and its pictures.
func Report(r *Results) report.Report {
	f := r.Figures()
	text := "\n" + r.circumstances() + bars(f).Titled("### Against the targets") + bulkTable(f) + idleTable(f) + latencyTable(f) +
		fmt.Sprintf("\n![CPU per GiB by relay](%s)\n\n![Memory of each idle connection by relay](%s)\n", cpuPicture, memoryPicture) + publishedTables(f) + "\n"
	return report.Report{Text: text, Pictures: map[string]string{cpuPicture: cpuBars(f), memoryPicture: memoryBars(f)}}
}

func (r *Results) circumstances() string {
	var b strings.Builder
	if len(r.Parts) > 0 {
		m := r.Parts[0].Machine
		fmt.Fprintf(&b, "%s, GOMAXPROCS=%d, %s, %d cores, %s; raw results: %s.", r.Parts[0].Go, m.GOMAXPROCS, m.CPU, m.Cores, m.System, report.Raw("relay.json"))
	}
	fmt.Fprintf(&b, " Other relays: %s.\n\n", report.Join(slices.Sorted(maps.Keys(r.Programs)), "; ", func(name string) string { return r.Programs[name] }))
	for _, name := range slices.Sorted(maps.Keys(r.Missing)) {
		fmt.Fprintf(&b, "Not measured: %s, for want of %s.\n\n", name, r.Missing[name])
	}
	t := report.NewTable("part", "date", "commit", "rounds", "seconds", "samples", "of them while others used > 20 % of a core")
	for _, p := range r.Parts {
		t.Row("`bench relay -only "+p.Group+"`", p.Date, p.Commit, fmt.Sprint(p.Rounds), report.Whole(math.Round(p.Seconds)), fmt.Sprint(len(p.Samples)), fmt.Sprint(p.Noisy()))
	}
	return b.String() + t.String()
}

// goPeers are those of the bars.
var goPeers = []string{Splice, poolName(4), poolName(16), poolName(64)}

// least is the measured relay that takes the least CPU time.
func least(f *report.Figures, where, mode string, names ...string) (name string, cpu float64) {
	for _, n := range names {
		if s, ok := f.Get(where, n, mode); ok && (name == "" || CPU(s) < cpu) {
			name, cpu = n, CPU(s)
		}
	}
	return name, cpu
}

// bars compares our relay with its targets.
func bars(f *report.Figures) report.Targets {
	t := report.NewTargets("ours")
	for _, dir := range []string{caseUpload, caseDownload} {
		own, splice := CPU(f.At(dir, Ours, modeRaw)), CPU(f.At(dir, Splice, modeRaw))
		t.Add("plain "+dir+", CPU per GiB", ms(own), fmt.Sprintf("≤ 1.05 × io.Copy by splice, %s (is %.2f)", ms(splice), own/splice), own <= 1.05*splice)
		if name, cpu := least(f, dir, modeRaw, "HAProxy", "HAProxy, splice"); name != "" {
			t.Add("plain "+dir+", CPU per GiB", ms(own), "< "+name+", "+ms(cpu), own < cpu)
		}
		if s, ok := f.Get(dir, Ours, modeTLS); ok {
			name, cpu := least(f, dir, modeTLS, goPeers...)
			t.Add("TLS "+dir+", CPU per GiB", ms(CPU(s)), "≤ "+name+", "+ms(cpu), CPU(s) <= cpu)
		}
	}
	for _, mode := range modes {
		for _, test := range []string{caseMTUUp, caseMTUDown, caseSmallUp, caseSmallDown} {
			own, ok := f.Get(test, Ours, mode.name)
			if !ok {
				continue
			}
			// The least of many noisy medians is no relay, so each is compared by rounds.
			rival, most := "", 0.0
			for _, c := range contenders() {
				ratio, _ := f.CPURatio(measure.Key{Case: test, Library: Ours, Mode: mode.name}, measure.Key{Case: test, Library: c.name, Mode: mode.name})
				if !c.job.Own && ratio > most {
					rival, most = c.name, ratio
				}
			}
			if rival != "" {
				t.Add(mode.short+": "+test+", CPU per GiB", ms(CPU(own)), fmt.Sprintf("≤ 1.1 × the best, which is %s, %s (is %.2f, the median of rounds)", rival, ms(CPU(f.At(test, rival, mode.name))), most), most <= 1.1)
			}
		}
	}
	for _, mode := range modes {
		if s, ok := f.Get(caseIdle, Ours, mode.name); ok {
			title := fmt.Sprintf("%s, each of %.0f idle connections", mode.short, s.Extra["conns"])
			t.Add(title, kib(s.Extra["bytes"]), fmt.Sprintf("≤ %.0f KiB", mode.mostKiB), s.Extra["bytes"] <= mode.mostKiB*1024)
			t.Add(title, descriptors(s)+" descriptors", "≤ 2", math.Round(10*s.Extra["descriptors"]) <= 20)
		}
	}
	for _, mode := range modes {
		s, ok := f.Get(caseLatency, Ours, mode.name)
		base, ok2 := f.Get(caseLatency, direct, mode.name)
		if !ok || !ok2 {
			continue
		}
		for _, q := range []struct {
			name string
			most float64
		}{{"p50", 30e3}, {"p99", 100e3}} {
			added := s.Extra[q.name] - base.Extra[q.name]
			t.Add(mode.short+": added latency, "+q.name, report.Micros(added), "≤ "+report.Micros(q.most), added <= q.most)
		}
	}
	return t
}

// modes are those of the comparison, with their names in tables.
var modes = []struct {
	name, short, title string
	mostKiB            float64 // of an idle connection
}{
	{modeRaw, "plain", "Plain on both sides", 10},
	{modeTLS, "TLS", "TLS from the client (1.3, AES-128-GCM), plain to the upstream", 35},
}

func ms(v float64) string  { return report.Number(v) + " ms" }
func kib(v float64) string { return report.Number(v/1024) + " KiB" }
func mib(v float64) string { return report.Number(v / (1 << 20)) }

func descriptors(s measure.Summary) string {
	return report.Count(math.Round(10*s.Extra["descriptors"]) / 10)
}

// names lists all relays in order.
func names() []string {
	var all []string
	for _, c := range contenders() {
		all = append(all, c.name)
	}
	return all
}

// perRelay makes a table with a row for each relay, and the same columns for
// each pair of case and mode. Relays that were not measured are left out.
func perRelay(f *report.Figures, head []string, pairs [][2]string, cells func(s measure.Summary, pair [2]string) []string) *report.Table {
	t := report.NewTable(append([]string{"relay"}, head...)...)
	for _, name := range names() {
		row, measured := []string{name}, false
		for _, pair := range pairs {
			if s, ok := f.Get(pair[0], name, pair[1]); ok {
				row, measured = append(row, cells(s, pair)...), true
				continue
			}
			for range len(head) / len(pairs) {
				row = append(row, "–")
			}
		}
		if measured {
			t.Row(row...)
		}
	}
	return t
}

func bulkTable(f *report.Figures) string {
	text := "\n### Bulk\n\nOne connection, writes of 64 KiB. CPU is that of the relay's process: medians; the picture has the least and the most. HAProxy, nginx, socat and stunnel run with the buffers they come with. Reads are calls of read(2); other relays use recv(2), which the kernel does not count.\n"
	for _, mode := range modes {
		text += perRelay(f, []string{"upload MB/s", "CPU ms per GiB", "reads per GiB", "download MB/s", "CPU ms per GiB", "reads per GiB"}, [][2]string{{caseUpload, mode.name}, {caseDownload, mode.name}}, func(s measure.Summary, _ [2]string) []string {
			reads := "–"
			if v, ok := s.Extra["reads_gib"]; ok {
				reads = report.Whole(v)
			}
			return []string{report.Number(mbps(s)), report.Number(CPU(s)), reads}
		}).Titled("**%s**", mode.title)
	}
	return text
}

func idleTable(f *report.Figures) string {
	return "\n### Idle connections\n" + perRelay(f, []string{"connections", "plain: memory each", "descriptors each", "connections", "TLS: memory each", "descriptors each"}, [][2]string{{caseIdle, modeRaw}, {caseIdle, modeTLS}}, func(s measure.Summary, _ [2]string) []string {
		return []string{report.Count(s.Extra["conns"]), kib(s.Extra["bytes"]), descriptors(s)}
	}).Titled("Each has passed on 200 bytes in both directions. Memory is the growth of the process's share of what is resident (PSS), of all its processes; the kernel's own for sockets and pipes is not in it. Where there are fewer connections, the relay would have run out of the 20,000 descriptors, or starts a process for each.")
}

func latencyTable(f *report.Figures) string {
	cells := func(s measure.Summary, pair [2]string) []string {
		base := f.At(caseLatency, direct, pair[1])
		us := func(ns float64) string { return report.Number(ns / 1000) }
		return []string{us(s.Extra["p50"]), us(s.Extra["p99"]), us(s.Extra["p50"] - base.Extra["p50"]), us(s.Extra["p99"] - base.Extra["p99"])}
	}
	none := []string{"none: the client talks to the upstream"}
	t := report.NewTable("relay", "plain: p50 µs", "p99 µs", "added p50", "added p99", "TLS: p50 µs", "p99 µs", "added p50", "added p99")
	for _, mode := range modes {
		none = append(none, cells(f.At(caseLatency, direct, mode.name), [2]string{caseLatency, mode.name})...)
	}
	t.Row(none...)
	t.Append(perRelay(f, make([]string, 8), [][2]string{{caseLatency, modeRaw}, {caseLatency, modeTLS}}, cells))
	return "\n### Latency\n" + t.Titled("A message of 200 bytes to the upstream and back, the next when it is there, on one connection.")
}

// Names of the pictures' files, beside the document.
const (
	cpuPicture    = "relay-cpu.svg"
	memoryPicture = "relay-memory.svg"
)

// barsOf draws the relays that were measured.
func barsOf(f *report.Figures, title, where, mode string, value func(measure.Summary) float64, of func(measure.Sample) float64) plot.BarPanel {
	p := plot.BarPanel{Title: title}
	for _, name := range names() {
		s, ok := f.Get(where, name, mode)
		if !ok {
			// A relay that was measured in the other mode is shown without a value.
			_, plain := f.Get(where, name, modeRaw)
			if _, tls := f.Get(where, name, modeTLS); plain || tls {
				p.Bars = append(p.Bars, plot.Bar{Name: name, None: true})
			}
			continue
		}
		bar := plot.Bar{Name: name, Value: value(s), Low: value(s), High: value(s), Own: name == Ours}
		for _, sample := range f.Samples {
			if of != nil && sample.Case == where && sample.Library == name && sample.Mode == mode {
				bar.Low, bar.High = min(bar.Low, of(sample)), max(bar.High, of(sample))
			}
		}
		p.Bars = append(p.Bars, bar)
	}
	if len(p.Bars) == 0 {
		report.Miss("%s, %s", where, mode)
	}
	return p
}

func cpuBars(f *report.Figures) string {
	var panels []plot.BarPanel
	for i, mode := range modes {
		for _, dir := range []string{caseUpload, caseDownload} {
			panels = append(panels, barsOf(f, []string{"Plain, ", "TLS, "}[i]+dir, dir, mode.name, CPU, func(s measure.Sample) float64 { return s.CPUNsPerOp * perGiB }))
		}
	}
	return plot.Bars("CPU time of the relay's process per GiB: median, least to most", "ms", panels)
}

func memoryBars(f *report.Figures) string {
	var panels []plot.BarPanel
	for i, mode := range modes {
		panels = append(panels, barsOf(f, []string{"Plain", "TLS from the client"}[i], caseIdle, mode.name, func(s measure.Summary) float64 { return s.Extra["bytes"] / 1024 }, nil))
	}
	return plot.Bars("Memory of the relay's processes for each idle connection", "KiB", panels)
}

// publishedText introduces the published benchmark; PUBLISHED.md has its claims
// and figures beside ours.
const publishedText = `
### A published benchmark of relay buffers, made again

It pumped bytes between in-memory pipes (net.Pipe) and concluded that the size
of a relay's buffer changes neither the number of reads nor the throughput, that
pooled buffers save the memory of stacks, and that both cost the same CPU. A pipe
hands one Write to one Read, no larger than the Write; a socket gathers what has
arrived until somebody reads it. Its "TLS" is taken here to be the framing alone,
as its throughput is beyond that of encryption; crypto/tls is measured too.
[PUBLISHED.md](PUBLISHED.md) has its claims and figures beside ours.
`

// publishedTables are the tests of the published benchmark: in memory as it made
// them, and on sockets.
func publishedTables(f *report.Figures) string {
	pipe := func(kib int) float64 { return f.At(pipeLarge, poolName(kib), modePipe+", "+wrapNone).Extra["reads"] }
	return publishedText + pipeTable(f) + fmt.Sprintf("\nRaw reads in memory are equal only because nobody writes more than 4 KiB at once: with writes of 64 KiB, which it did not try, 4 KiB buffers need %.1f times the reads of 16 KiB ones.\n", pipe(4)/pipe(16)) +
		socketTable(f) + growTables(f) + burstTable(f) + getPutTable(f)
}

// perTest makes a table with a row for each test and a column for each relay.
func perTest(f *report.Figures, relays []string, tests [][2]string, label func(test [2]string) []string, cell func(measure.Summary) string) *report.Table {
	t := report.NewTable(append([]string{"test", "bytes are"}, relays...)...)
	for _, test := range tests {
		row := label(test)
		for _, name := range relays {
			if s, ok := f.Get(test[0], name, test[1]); ok {
				row = append(row, cell(s))
			} else {
				row = append(row, "–")
			}
		}
		t.Row(row...)
	}
	return t
}

var publishedNames = []string{poolName(4), poolName(8), poolName(16), poolName(64), stackName}

func pipeTable(f *report.Figures) string {
	var tests [][2]string
	for _, t := range pipeTransfers(Settings{}) {
		tests = append(tests, [2]string{t.name, modePipe + ", " + t.wrap})
	}
	return perTest(f, publishedNames, tests, func(test [2]string) []string { return []string{test[0], test[1][len(modePipe)+2:]} }, func(s measure.Summary) string {
		return fmt.Sprintf("%.0f MB/s, %.0f", mbps(s), s.Extra["reads"])
	}).Titled("**Its tests in memory**: throughput, and reads of the pipe for one stream (5 MiB; C by 1,460 bytes and the last ones 10 MiB; D 2 MB down, 1 MB up)")
}

func socketTable(f *report.Figures) string {
	var tests [][2]string
	for _, tls := range []bool{false, true} {
		for _, t := range append(bulk(Settings{}, tls), published(Settings{})...) {
			if t.tls == tls {
				tests = append(tests, [2]string{t.name, socketMode(tls)})
			}
		}
	}
	letters := map[string]string{
		caseUpload: "A, C: upload, 64 KiB writes", caseDownload: "B, C: download, 64 KiB writes",
		caseMTUUp: "C: " + caseMTUUp, caseMTUDown: "C: " + caseMTUDown,
		caseSmallUp: "D: " + caseSmallUp, caseSmallDown: "D: " + caseSmallDown, caseTenMB: "10 MB relay",
	}
	return perTest(f, append(publishedNames, Splice, Ours), tests, func(test [2]string) []string {
		return []string{letters[test[0]], map[string]string{modeRaw: wrapNone, modeTLS: wrapTLS}[test[1]]}
	}, func(s measure.Summary) string {
		return fmt.Sprintf("%.0f MB/s, %.0f, %.0f ms", mbps(s), s.Extra["reads_gib"], CPU(s))
	}).Titled("**Its tests on sockets**: throughput, reads per GiB, CPU of the relay per GiB (a splice is no read)")
}

// memoryNames are the relays whose memory is measured step by step.
var memoryNames = []string{stackName, poolName(16), poolName(4), Ours}

func growTables(f *report.Figures) (text string) {
	for _, mode := range []struct{ name, title string }{
		{modeNothing, "goroutines that hold a buffer and pass it to nobody, as the original measured"},
		{modePipe, "idle relays between in-memory pipes, two goroutines each"},
		{modeRaw, "idle connections over sockets"},
		{modeTLS, "idle connections over sockets, TLS from the client"},
	} {
		at := stepsOf(f.At(caseGrow, poolName(16), mode.name))
		head := []string{"buffer"}
		for _, n := range at {
			head = append(head, fmt.Sprintf("N = %d: stack", n), "heap", "process")
		}
		t := report.NewTable(head...)
		for _, name := range memoryNames {
			s, ok := f.Get(caseGrow, name, mode.name)
			if !ok {
				continue
			}
			row := []string{name}
			for _, n := range at {
				for _, what := range []string{"stack", "heap", "process"} {
					row = append(row, mib(s.Extra[fmt.Sprintf("%s_%d", what, n)]))
				}
			}
			t.Row(row...)
		}
		text += t.Titled("**Memory over N, MiB: %s**", mode.title)
	}
	return text
}

// stepsOf are the numbers of connections at which memory was looked at.
func stepsOf(s measure.Summary) []int {
	var all []int
	for name := range s.Extra {
		if n, err := strconv.Atoi(strings.TrimPrefix(name, "stack_")); err == nil {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return all
}

func burstTable(f *report.Figures) string {
	t := report.NewTable("buffer", "over", "heap after the first", "after a collection", "at the peak of the second: heap", "stack")
	for _, mode := range []string{modePipe, modeRaw, modeTLS} {
		for _, name := range memoryNames {
			if s, ok := f.Get(caseBursts, name, mode); ok {
				t.Row(name, mode, mib(s.Extra["idle_heap"]), mib(s.Extra["clean_heap"]), mib(s.Extra["active_heap"]), mib(s.Extra["active_stack"]))
			}
		}
	}
	return t.Titled("**Two bursts of 500 connections, 256 KiB each, MiB**")
}

func getPutTable(f *report.Figures) string {
	return report.Of(getPut(),
		report.Column[measure.Subject]{Head: "a buffer", Cell: func(s measure.Subject) string { return s.Library }},
		report.Column[measure.Subject]{Head: "ns", Cell: func(s measure.Subject) string { return report.Number(f.At(s.Case, s.Library, s.Mode).Ns) }},
	).Titled("**Get and Put beside the array on the stack**")
}
