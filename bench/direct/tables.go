package direct

import (
	"fmt"
	"path/filepath"

	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/bench/internal/report"
)

// Kind names the place of the tables in the document, and begins the names of
// the files of raw results.
const Kind = "direct"

// File is the name of the file with the raw results of an experiment.
func File(name string) string { return Kind + "-" + name + ".json" }

// Load reads the raw results of an experiment from a folder.
func Load(dir, name string) (*report.Figures, error) {
	r, err := measure.Load[measure.Results](filepath.Join(dir, File(name)), Kind)
	if err != nil {
		return nil, err
	}
	return report.FiguresOf(*r), nil
}

// Report makes the tables from the raw results in a folder.
func Report(dir string) (report.Report, error) {
	h, err := LoadHeadlines(filepath.Join(dir, FileHeadline))
	if err != nil {
		return report.Report{}, err
	}
	all := map[string]table{}
	for _, name := range Cases() {
		f, err := Load(dir, name)
		if err != nil {
			return report.Report{}, err
		}
		all[name] = table{f, name}
	}
	return report.Make(func() report.Report {
		// What a record allocates is of the same records without gRPC around them,
		// which allocates as well.
		text := h.tables(all[CasePools].mallocs(OwnDrop, UsedAgain))
		for _, e := range []struct {
			name, title string
			make        func(table) string
		}{
			{CaseLoss, "Accepted and found", table.loss},
			{CaseCall, "LogBytes", table.call},
			{CaseBuffers, "Buffer size", table.buffers},
			{CaseShards, "Threads and shards", table.shards},
			{CaseIO, "From buffered writes to writev", table.engines},
			{CasePools, "Memory taken anew and used again", table.pools},
			{CaseSmall, "Lines of 256 bytes to a file", table.small},
		} {
			t := all[e.name]
			text += fmt.Sprintf("\n### %s\n\n%s\nCommand: `%s`; raw results: %s.\n%s", e.title, report.Circumstances(&t.Results), t.Command, report.Raw(File(e.name)), e.make(t))
		}
		return report.Report{Text: text + "\n", Pictures: map[string]string{"results/" + FilePlot: h.plot()}}
	})
}

// A table has the figures of one experiment.
type table struct {
	*report.Figures
	name string
}

func (t table) at(design, mode string) measure.Summary { return t.At(t.name, design, mode) }

func (t table) extra(design, mode, figure string) float64 { return t.at(design, mode).Extra[figure] }

// total adds a figure up over all rounds.
func (t table) total(design, mode, figure string) float64 {
	return t.Total(t.name, design, mode, figure)
}

// millis has times of the extra figures.
func (t table) millis(design, mode string, figures ...string) (cells []string) {
	for _, figure := range figures {
		if figure == "write_max" {
			cells = append(cells, report.Millis(t.Worst(t.name, design, mode, figure)))
		} else {
			cells = append(cells, report.Millis(t.extra(design, mode, figure)))
		}
	}
	return cells
}

// dropped is what was refused of all rounds, in percent, and what was lost
// beyond that if anything was.
func (t table) dropped(design, mode string) string {
	given, lost := t.total(design, mode, "given"), t.total(design, mode, "lost")
	text := report.Percent(t.total(design, mode, "refused"), given)
	if lost > 0 {
		text += " + " + report.Percent(lost, given) + " lost"
	}
	return text
}

// mallocs is how many allocations a record costs beyond those of the loop that
// makes the same records and logs nothing.
func (t table) mallocs(design, mode string) float64 {
	return max(0, t.at(design, mode).Allocs-t.at(NoCall, UsedAgain).Allocs)
}

func (t table) loss() (text string) {
	for _, mode := range []string{FlatOut, Paced, Large, Headline} {
		out := report.NewTable("all rounds together", "given", "refused", "accepted", "lost without a word", "torn", "twice", "out of order", "NULs in the file", "file ÷ payload", "accepted MB/s")
		for _, d := range Designs() {
			if mode == Headline && !d.Own && d.Name != Published {
				continue
			}
			s := t.at(d.Name, mode)
			sum := func(figure string) float64 { return t.total(d.Name, mode, figure) }
			lost := report.Whole(sum("lost"))
			if sum("lost") > 0 {
				lost = fmt.Sprintf("**%s (%s)**", lost, report.Percent(sum("lost"), sum("accepted")))
			}
			out.Row(d.Name, report.Whole(sum("given")), report.Percent(sum("refused"), sum("given")), report.Whole(sum("accepted")), lost,
				report.Whole(sum("torn")), report.Whole(sum("repeated")), report.Whole(sum("reordered")), report.Whole(sum("nul_bytes")),
				fmt.Sprintf("%.4f", s.Extra["file_per_payload"]), report.Number(s.Extra["mb_s"]))
		}
		text += out.Titled("**%s**", mode)
	}
	return text
}

func (t table) call() string {
	out := report.NewTable("design", "1 goroutine, ns", "64 goroutines, ns", "allocations", "each by itself: p50, ns", "p99.8 (fills a buffer), ns", "p99.9, ns")
	out.Row("as published", "~100", "~150", "0", "–", "~100 + ~50", "–")
	for _, d := range append([]Design{{Name: NoCall}}, Designs()...) {
		one, swap := t.at(d.Name, Uncontended), t.at(d.Name, AtSwap).Extra
		out.Row(d.Name, report.Number(one.CallerNs), report.Number(t.at(d.Name, Contended).CallerNs), report.Count(one.Allocs),
			report.Number(swap["call_p50"]), report.Number(swap["call_p998"]), report.Number(swap["call_p999"]))
	}
	return "\n" + out.String()
}

// buffers has the writes of both designs. The published one writes a set at a
// time, ours a slab or several, so that there are more of them.
func (t table) buffers() (text string) {
	said := map[string][2]string{"8 MB": {"0.247 %", "21 ms"}, "32 MB": {"0.247 %", "21 ms"}, "64 MB": {"0.035 %", "25 ms"}, "128 MB": {"0.12 %", "73 ms"}, "256 MB": {"not tested", "–"}, "512 MB": {"0.12 %", "500 ms"}}
	for _, name := range []string{Published, OwnDrop} {
		out := report.NewTable("buffer", "published: drops", "write", "seconds", "written", "full sets of that", "writes", "drops", "write mean", "p99", "max", "LogBytes p99", "memory")
		for _, mode := range t.Modes() {
			x := t.at(name, mode).Extra
			written := (x["accepted"] - x["lost"]) * headlineBytes
			row := []string{mode, said[mode][0], said[mode][1], report.Number(x["seconds"]), report.Number(written/1e9) + " GB", report.Number(written / x["buffer"]), report.Whole(x["flushes"]), t.dropped(name, mode)}
			row = append(row, t.millis(name, mode, "write_mean", "write_p99", "write_max", "call_p99")...)
			out.Row(append(row, report.MiB(x["memory"]))...)
		}
		text += out.Titled("**%s**: medians of the rounds, drops and max of all", name)
	}
	return text
}

func (t table) shards() string {
	out := report.NewTable("threads / shards", "published: drops", "write", "memory", "written anew: drops", "write mean", "p99", "ours: drops", "write mean", "p99", "call p99", "memory")
	said := map[string][3]string{
		"50T / 4S": {"0.114 %", "40.94 ms", "4482 MB"}, "50T / 8S": {"0.289 %", "61.87 ms", "6805 MB"},
		"100T / 4S": {"0.545 %", "53.68 ms", "5195 MB"}, "100T / 8S": {"0.035 %", "38.89 ms", "5549 MB"}, "100T / 16S": {"0.435 %", "54.78 ms", "8659 MB"},
		"200T / 8S": {"–", "–", "–"}, "200T / 16S": {"~0.05 % (est)", "~42 ms (est)", "~8 GB (est)"},
	}
	for _, mode := range t.Modes() {
		row := []string{mode, said[mode][0], said[mode][1], said[mode][2], t.dropped(Published, mode)}
		row = append(append(row, t.millis(Published, mode, "write_mean", "write_p99")...), t.dropped(OwnDrop, mode))
		row = append(row, t.millis(OwnDrop, mode, "write_mean", "write_p99", "call_p99")...)
		out.Row(append(row, report.MiB(t.extra(OwnDrop, mode, "memory")))...)
	}
	return "\n" + out.String()
}

func (t table) engines() string {
	said := map[string]string{
		Buffered.String(): "unpredictable", Separate.String(): "50 ms and more", Copied.String(): "50 ms; 40–50 to copy 128 MB", Vectored.String(): "25 ms",
	}
	out := report.NewTable("64 MB, 8 shards, 1000 × 300 KiB a second", "published: write", "write mean", "p99", "max", "drops", "call p99", "CPU s per GB")
	for _, mode := range t.Modes() {
		name, row := Published, []string{"written anew, " + mode, said[mode]}
		if said[mode] == "" {
			name, row = OwnDrop, []string{"ours, " + mode, "–"}
		}
		row = append(append(row, t.millis(name, mode, "write_mean", "write_p99", "write_max")...), t.dropped(name, mode))
		out.Row(append(append(row, t.millis(name, mode, "call_p99")...), report.Number(t.at(name, mode).CPUNs/headlineBytes))...)
	}
	return "\n" + out.String()
}

func (t table) pools() string {
	out := report.NewTable("records of 300 KiB", "a second", "seconds", "GC cycles", "records a cycle", "pauses", "allocated a record", "allocations a record", "less those of the loop", "drops", "LogBytes p99", "CPU cores")
	out.Row("published, before", "1000", "120", "2370", "51", "2.5 s", "290 KB", "–", "–", "–", "–", "–")
	out.Row("published, after", "1000", "120", "9", "13333", "1.8 ms", "~1 KB", "–", "–", "–", "–", "–")
	for _, row := range [][3]string{
		{"written anew, before", Published, TakenAnew}, {"written anew, after", Published, UsedAgain}, {"ours", OwnDrop, UsedAgain}, {"the loop alone", NoCall, UsedAgain},
	} {
		s := t.at(row[1], row[2])
		x := s.Extra
		perCycle, drops := "none", t.dropped(row[1], row[2])
		if x["gc_cycles"] > 0 {
			perCycle = report.Whole(x["given"] / x["gc_cycles"])
		}
		if row[1] == NoCall {
			drops = "–"
		}
		out.Row(row[0], report.Whole(x["given"]/x["seconds"]), report.Number(x["seconds"]), report.Whole(x["gc_cycles"]), perCycle, report.Millis(x["gc_pause_ns"]),
			report.Number(s.Bytes/1000)+" KB", fmt.Sprintf("%.3f", s.Allocs), fmt.Sprintf("%.3f", t.mallocs(row[1], row[2])), drops, report.Millis(x["call_p99"]), fmt.Sprintf("%.3f", s.CPUNs*x["given"]/x["seconds"]/1e9))
	}
	return "\n" + out.String()
}

func (t table) small() string {
	head := []string{"a line until all are in the file: median (least to most)"}
	modes := []string{}
	for _, n := range smallGoroutines {
		modes = append(modes, smallMode(n))
	}
	modes = append(modes, SyncedMode)
	for _, mode := range modes {
		head = append(head, mode+", ns", "CPU ns")
	}
	out := report.NewTable(append(head, "lines lost")...)
	for _, d := range smallDesigns() {
		row := []string{d.Name}
		lost, given := 0.0, 0.0
		for _, mode := range modes {
			s := t.at(d.Name, mode)
			row = append(row, report.Spread(s, 1), report.Number(s.CPUNs))
			lost, given = lost+t.total(d.Name, mode, "lost"), given+t.total(d.Name, mode, "given")
		}
		out.Row(append(row, report.Percent(lost, given))...)
	}
	return "\n" + out.String()
}
