package direct

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rollway/rollway/bench/internal/measure"
)

// Kind names the place of the tables in the document, and begins the names of
// the files of raw results.
const Kind = "direct"

// File is the name of the file with the raw results of an experiment.
func File(name string) string { return Kind + "-" + name + ".json" }

var errMissing = errors.New("no samples: measure again")

// Tables makes the tables from the raw results in a folder.
func Tables(dir string) (string, error) {
	headline, err := headlineTables(dir)
	if err != nil {
		return "", fmt.Errorf("tables of the headline: %w", err)
	}
	var text strings.Builder
	for _, name := range Cases() {
		r, err := measure.Load[measure.Results](filepath.Join(dir, File(name)), Kind)
		if err != nil {
			return "", err
		}
		g := newGrid(r)
		made, err := renderers[name](g)
		if err != nil {
			return "", fmt.Errorf("tables of %s: %w", name, err)
		}
		fmt.Fprintf(&text, "\n### %s\n\n%s\nCommand: `%s`; raw results: [%s](results/%s).\n%s", titles[name], r.Circumstances(), r.Command, File(name), File(name), made)
	}
	return headline + text.String() + "\n", nil
}

// headlineTables are those of the gRPC server. What a record allocates is from
// the same records without gRPC around them, which allocates as well.
func headlineTables(dir string) (string, error) {
	h, err := LoadHeadlines(filepath.Join(dir, FileHeadline))
	if err != nil {
		return "", err
	}
	r, err := measure.Load[measure.Results](filepath.Join(dir, File(CasePools)), Kind)
	if err != nil {
		return "", err
	}
	own, err := newGrid(r).mallocs(OwnDrop, UsedAgain)
	if err != nil {
		return "", err
	}
	return h.tables(own)
}

var titles = map[string]string{
	CaseLoss:    "Accepted and found",
	CaseCall:    "LogBytes",
	CaseBuffers: "Buffer size",
	CaseShards:  "Threads and shards",
	CaseGRPC:    "Requests by threads, shards and size of the buffers",
	CaseIO:      "From buffered writes to writev",
	CasePools:   "Memory taken anew and used again",
	CaseSmall:   "Lines of 256 bytes to a file",
}

var renderers = map[string]func(*grid) (string, error){
	CaseLoss: lossTables, CaseCall: callTable, CaseBuffers: bufferTable, CaseShards: shardTable, CaseGRPC: grpcTables,
	CaseIO: ioTable, CasePools: poolTable, CaseSmall: smallTable,
}

// grid finds samples by design and mode.
type grid struct {
	samples []measure.Sample
	sums    map[measure.Key]measure.Summary
	modes   []string // in the order of the first round
}

func newGrid(r *measure.Results) *grid {
	g := &grid{samples: r.Samples, sums: r.Summarize()}
	for _, s := range r.Samples {
		if !slices.Contains(g.modes, s.Mode) {
			g.modes = append(g.modes, s.Mode)
		}
	}
	return g
}

// at is the summary of a design in a mode.
func (g *grid) at(design, mode string) (measure.Summary, error) {
	for k, s := range g.sums {
		if k.Library == design && k.Mode == mode {
			return s, nil
		}
	}
	return measure.Summary{}, fmt.Errorf("%s, %s: %w", design, mode, errMissing)
}

// total adds a figure up over all rounds.
func (g *grid) total(design, mode, name string) float64 {
	sum := 0.0
	for _, s := range g.samples {
		if s.Library == design && s.Mode == mode {
			sum += s.Extra[name]
		}
	}
	return sum
}

// worst is the greatest value of a figure in any round.
func (g *grid) worst(design, mode, name string) float64 {
	most := 0.0
	for _, s := range g.samples {
		if s.Library == design && s.Mode == mode {
			most = max(most, s.Extra[name])
		}
	}
	return most
}

// dropped is what was refused of all rounds, in percent, and what was lost
// beyond that if anything was.
func (g *grid) dropped(design, mode string) string {
	given, lost := g.total(design, mode, "given"), g.total(design, mode, "lost")
	text := percent(g.total(design, mode, "refused"), given)
	if lost > 0 {
		text += " + " + percent(lost, given) + " lost"
	}
	return text
}

func percent(part, whole float64) string {
	if part == 0 || whole == 0 {
		return "0"
	}
	return measure.Number(100*part/whole) + " %"
}

func whole(v float64) string { return fmt.Sprintf("%.0f", v) }

func millis(ns float64) string { return measure.Number(ns/1e6) + " ms" }

func megabytes(n float64) string { return measure.Number(n/(1<<20)) + " MiB" }

func lossTables(g *grid) (string, error) {
	var text strings.Builder
	for _, mode := range []string{FlatOut, Paced, Large, Headline} {
		t := measure.NewTable("all rounds together", "given", "refused", "accepted", "lost without a word", "torn", "twice", "out of order", "NULs in the file", "file ÷ payload", "accepted MB/s")
		for _, d := range Designs() {
			s, err := g.at(d.Name, mode)
			if err != nil {
				if mode == Headline && !d.Own && d.Name != Published {
					continue
				}
				return "", err
			}
			sum := func(name string) float64 { return g.total(d.Name, mode, name) }
			lost := whole(sum("lost"))
			if sum("lost") > 0 {
				lost = fmt.Sprintf("**%s (%s)**", lost, percent(sum("lost"), sum("accepted")))
			}
			t.Row(d.Name, whole(sum("given")), percent(sum("refused"), sum("given")), whole(sum("accepted")), lost,
				whole(sum("torn")), whole(sum("repeated")), whole(sum("reordered")), whole(sum("nul_bytes")),
				fmt.Sprintf("%.4f", s.Extra["file_per_payload"]), measure.Number(s.Extra["mb_s"]))
		}
		fmt.Fprintf(&text, "\n**%s**\n\n%s", mode, t)
	}
	return text.String(), nil
}

func callTable(g *grid) (string, error) {
	t := measure.NewTable("design", "1 goroutine, ns", "64 goroutines, ns", "allocations", "each by itself: p50, ns", "p99.8 (fills a buffer), ns", "p99.9, ns")
	t.Row("as published", "~100", "~150", "0", "–", "~100 + ~50", "–")
	for _, d := range append([]Design{{Name: NoCall}}, Designs()...) {
		one, err1 := g.at(d.Name, Uncontended)
		many, err2 := g.at(d.Name, Contended)
		swap, err3 := g.at(d.Name, AtSwap)
		if err := errors.Join(err1, err2, err3); err != nil {
			return "", err
		}
		t.Row(d.Name, measure.Number(one.CallerNs), measure.Number(many.CallerNs), measure.Count(one.Allocs),
			measure.Number(swap.Extra["call_p50"]), measure.Number(swap.Extra["call_p998"]), measure.Number(swap.Extra["call_p999"]))
	}
	return "\n" + t.String(), nil
}

// bufferTable has the writes of both designs. The published one writes a set at
// a time, ours a slab or several, so that there are more of them.
func bufferTable(g *grid) (string, error) {
	var text strings.Builder
	said := map[string][2]string{"8 MB": {"0.247 %", "21 ms"}, "32 MB": {"0.247 %", "21 ms"}, "64 MB": {"0.035 %", "25 ms"}, "128 MB": {"0.12 %", "73 ms"}, "256 MB": {"not tested", "–"}, "512 MB": {"0.12 %", "500 ms"}}
	for _, name := range []string{Published, OwnDrop} {
		t := measure.NewTable("buffer", "published: drops", "write", "seconds", "written", "full sets of that", "writes", "drops", "write mean", "p99", "max", "LogBytes p99", "memory")
		for _, mode := range g.modes {
			s, err := g.at(name, mode)
			if err != nil {
				return "", err
			}
			x := s.Extra
			written := (x["accepted"] - x["lost"]) * headlineBytes
			t.Row(mode, said[mode][0], said[mode][1], measure.Number(x["seconds"]), measure.Number(written/1e9)+" GB", measure.Number(written/x["buffer"]), whole(x["flushes"]),
				g.dropped(name, mode), millis(x["write_mean"]), millis(x["write_p99"]), millis(g.worst(name, mode, "write_max")), millis(x["call_p99"]), megabytes(x["memory"]))
		}
		fmt.Fprintf(&text, "\n**%s**: medians of the rounds, drops and max of all\n\n%s", name, t)
	}
	return text.String(), nil
}

// pair is what the tables of buffers and shards say of the published design as
// written anew, and of ours.
func (g *grid) pair(mode string) ([]string, error) {
	theirs, err1 := g.at(Published, mode)
	ours, err2 := g.at(OwnDrop, mode)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	return []string{
		g.dropped(Published, mode), millis(theirs.Extra["write_mean"]), millis(theirs.Extra["write_p99"]),
		g.dropped(OwnDrop, mode), millis(ours.Extra["write_mean"]), millis(ours.Extra["write_p99"]),
		millis(ours.Extra["call_p99"]), megabytes(ours.Extra["memory"]),
	}, nil
}

func shardTable(g *grid) (string, error) {
	t := measure.NewTable("threads / shards", "published: drops", "write", "memory", "written anew: drops", "write mean", "p99", "ours: drops", "write mean", "p99", "call p99", "memory")
	said := map[string][3]string{
		"50T / 4S": {"0.114 %", "40.94 ms", "4482 MB"}, "50T / 8S": {"0.289 %", "61.87 ms", "6805 MB"},
		"100T / 4S": {"0.545 %", "53.68 ms", "5195 MB"}, "100T / 8S": {"0.035 %", "38.89 ms", "5549 MB"}, "100T / 16S": {"0.435 %", "54.78 ms", "8659 MB"},
		"200T / 8S": {"–", "–", "–"}, "200T / 16S": {"~0.05 % (est)", "~42 ms (est)", "~8 GB (est)"},
	}
	for _, mode := range g.modes {
		cells, err := g.pair(mode)
		if err != nil {
			return "", err
		}
		t.Row(append([]string{mode, said[mode][0], said[mode][1], said[mode][2]}, cells...)...)
	}
	return "\n" + t.String(), nil
}

func ioTable(g *grid) (string, error) {
	said := map[string]string{
		Buffered.String(): "unpredictable", Separate.String(): "50 ms and more", Copied.String(): "50 ms; 40–50 to copy 128 MB", Vectored.String(): "25 ms",
	}
	t := measure.NewTable("64 MB, 8 shards, 1000 × 300 KiB a second", "published: write", "write mean", "p99", "max", "drops", "call p99", "CPU s per GB")
	for _, mode := range g.modes {
		name, note := Published, said[mode]
		if note == "" {
			name, note = OwnDrop, "–"
		}
		s, err := g.at(name, mode)
		if err != nil {
			return "", err
		}
		row := "written anew, " + mode
		if name == OwnDrop {
			row = "ours, " + mode
		}
		t.Row(row, note, millis(s.Extra["write_mean"]), millis(s.Extra["write_p99"]), millis(g.worst(name, mode, "write_max")),
			g.dropped(name, mode), millis(s.Extra["call_p99"]), measure.Number(s.CPUNs/headlineBytes))
	}
	return "\n" + t.String(), nil
}

func poolTable(g *grid) (string, error) {
	t := measure.NewTable("records of 300 KiB", "a second", "seconds", "GC cycles", "records a cycle", "pauses", "allocated a record", "allocations a record", "less those of the loop", "drops", "LogBytes p99", "CPU cores")
	t.Row("published, before", "1000", "120", "2370", "51", "2.5 s", "290 KB", "–", "–", "–", "–", "–")
	t.Row("published, after", "1000", "120", "9", "13333", "1.8 ms", "~1 KB", "–", "–", "–", "–", "–")
	for _, row := range [][3]string{
		{"written anew, before", Published, TakenAnew}, {"written anew, after", Published, UsedAgain}, {"ours", OwnDrop, UsedAgain}, {"the loop alone", NoCall, UsedAgain},
	} {
		s, err := g.at(row[1], row[2])
		if err != nil {
			return "", err
		}
		less, err := g.mallocs(row[1], row[2])
		if err != nil {
			return "", err
		}
		x := s.Extra
		perCycle, drops := "none", g.dropped(row[1], row[2])
		if x["gc_cycles"] > 0 {
			perCycle = whole(x["given"] / x["gc_cycles"])
		}
		if row[1] == NoCall {
			drops = "–"
		}
		t.Row(row[0], whole(x["given"]/x["seconds"]), measure.Number(x["seconds"]), whole(x["gc_cycles"]), perCycle, millis(x["gc_pause_ns"]),
			measure.Number(s.Bytes/1000)+" KB", fmt.Sprintf("%.3f", s.Allocs), fmt.Sprintf("%.3f", less), drops, millis(x["call_p99"]), fmt.Sprintf("%.3f", s.CPUNs*x["given"]/x["seconds"]/1e9))
	}
	return "\n" + t.String(), nil
}

// mallocs is how many allocations a record costs beyond those of the loop that
// makes the same records and logs nothing.
func (g *grid) mallocs(design, mode string) (float64, error) {
	s, err1 := g.at(design, mode)
	loop, err2 := g.at(NoCall, UsedAgain)
	return max(0, s.Allocs-loop.Allocs), errors.Join(err1, err2)
}
