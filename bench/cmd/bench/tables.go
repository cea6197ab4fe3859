package main

import (
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/bench/logger"
)

// runTables puts the tables that the raw results give between the markers of
// the document.
func runTables(args []string) error {
	flags := flag.NewFlagSet("tables", flag.ExitOnError)
	dir := flags.String("results", "../docs/results", "folder of the raw results")
	doc := flags.String("doc", "../docs/BENCHMARKS.md", "document to write into")
	only := flags.String("only", "", "logger, writers or latency; default all")
	check := flags.Bool("check", false, "only make the tables, change nothing")
	if err := flags.Parse(args); err != nil {
		return err
	}
	made := 0
	for kind, render := range map[string]func(*measure.Results) (string, error){"logger": loggerTables, "writers": writerTables, "latency": latencyTables} {
		if *only != "" && kind != *only {
			continue
		}
		results, err := measure.Load[measure.Results](filepath.Join(*dir, kind+".json"), kind)
		if err != nil {
			return err
		}
		text, err := render(results)
		if err != nil {
			return fmt.Errorf("tables of %s: %w", kind, err)
		}
		made++
		if *check {
			continue
		}
		changed, err := measure.Replace(*doc, kind, text)
		if err != nil {
			return err
		}
		if changed {
			fmt.Printf("%s: tables of %s written\n", *doc, kind)
		}
	}
	if made == 0 {
		return fmt.Errorf("there are no tables of %q", *only)
	}
	fmt.Printf("%d passed, 0 failed\n", made)
	return nil
}

// errMissing is a case without a sample: the results are of another version.
var errMissing = errors.New("no samples: measure again")

func loggerTables(r *measure.Results) (string, error) {
	sums := r.Summarize()
	text := "\n" + r.Circumstances() + "\n" + loggerVersions(r)
	verdicts, err := verdictTable(r, sums)
	if err != nil {
		return "", err
	}
	text += "\n**Against the targets** (serial)\n\n" + verdicts
	for _, mode := range []string{logger.Serial, logger.Parallel} {
		text += fmt.Sprintf("\n**%s, ns per call: median (least to most)**\n\n%s", title(mode), loggerGrid(sums, mode, func(s measure.Summary) string {
			return fmt.Sprintf("%s (%s–%s)", measure.Number(s.Ns), measure.Number(s.MinNs), measure.Number(s.MaxNs))
		}))
	}
	text += "\n**CPU ns per call, parallel** (user and system time of the process)\n\n" + loggerGrid(sums, logger.Parallel, func(s measure.Summary) string { return measure.Number(s.CPUNs) })
	text += "\n**Allocations per call (bytes)**\n\n" + loggerGrid(sums, logger.Serial, allocations)
	text += "\n**Length of a line in bytes**\n\n" + loggerGrid(sums, logger.Serial, func(s measure.Summary) string { return fmt.Sprintf("%.0f", s.Extra["line_bytes"]) })
	text += "\n**Behind a \\*slog.Logger: LogAttrs with 6 mixed attributes**\n\n" + slogTable(sums)
	return text + "\n", nil
}

func allocations(s measure.Summary) string {
	return fmt.Sprintf("%s (%.0f)", measure.Count(s.Allocs), s.Bytes)
}

func title(mode string) string {
	if mode == logger.Serial {
		return "One goroutine"
	}
	return "A goroutine on each processor"
}

func loggerVersions(r *measure.Results) string {
	return fmt.Sprintf("Versions: zerolog %s, zap %s (its slog handler: zap/exp %s), phuslu/log %s, log/slog of %s. Raw results: [logger.json](results/logger.json).\n",
		r.Versions["github.com/rs/zerolog"], r.Versions["go.uber.org/zap"], r.Versions["go.uber.org/zap/exp"], r.Versions["github.com/phuslu/log"], r.Go)
}

func loggerGrid(sums map[measure.Key]measure.Summary, mode string, cell func(measure.Summary) string) string {
	head := []string{"library"}
	for _, c := range logger.Cases() {
		head = append(head, c.Title)
	}
	t := measure.NewTable(head...)
	for _, l := range logger.Libraries() {
		row := []string{l.Name}
		for _, c := range logger.Cases() {
			text := "–"
			if s, ok := sums[measure.Key{Case: c.Name, Library: l.Name, Mode: mode}]; ok {
				text = cell(s)
			}
			row = append(row, text)
		}
		t.Row(row...)
	}
	return t.String()
}

// verdictTable compares package rollway with its targets, by the ratios and
// differences within a round: what the machine did for minutes is not in them.
func verdictTable(r *measure.Results, sums map[measure.Key]measure.Summary) (string, error) {
	t := measure.NewTable("case", "rollway", "best other", "rollway ÷ best other", "target", "reached")
	add := func(name string, c logger.Case, libraries []logger.Library) error {
		key := func(library string) measure.Key {
			return measure.Key{Case: c.Name, Library: library, Mode: logger.Serial}
		}
		own, ok := sums[key(libraries[0].Name)]
		if !ok {
			return fmt.Errorf("%s, %s: %w", libraries[0].Name, c.Name, errMissing)
		}
		best := ""
		for _, l := range libraries[1:] {
			if s, ok := sums[key(l.Name)]; ok && !l.Reference && (best == "" || s.Ns < sums[key(best)].Ns) {
				best = l.Name
			}
		}
		if best == "" {
			return fmt.Errorf("others, %s: %w", c.Name, errMissing)
		}
		ofBest, _ := r.Ratio(key(libraries[0].Name), key(best))
		var targets []string
		reached := true
		want := func(text string, is, most float64) {
			targets = append(targets, text)
			reached = reached && is <= most // and not NaN: without samples nothing is reached
		}
		if c.TargetNs > 0 {
			want(fmt.Sprintf("≤ %s ns", measure.Count(c.TargetNs)), own.Ns, c.TargetNs)
		}
		if c.TargetOfBest > 0 {
			want(fmt.Sprintf("≤ %.2f × best", c.TargetOfBest), ofBest, c.TargetOfBest)
		}
		if c.TargetOfReference > 0 {
			ofReference, _ := r.Ratio(key(libraries[0].Name), key(logger.Reference))
			want(fmt.Sprintf("≤ %.2f × %s (is %.2f)", c.TargetOfReference, logger.Reference, ofReference), ofReference, c.TargetOfReference)
		}
		if c.TargetOverMessageNs > 0 {
			over, _ := r.Difference(key(libraries[0].Name), measure.Key{Case: logger.Message, Library: libraries[0].Name, Mode: logger.Serial})
			want(fmt.Sprintf("≤ %s ns more than message (is %s)", measure.Count(c.TargetOverMessageNs), measure.Number(over)), over, c.TargetOverMessageNs)
		}
		verdict := "yes"
		if !reached {
			verdict = "**no**"
		}
		t.Row(name, measure.Number(own.Ns)+" ns", fmt.Sprintf("%s %s ns", best, measure.Number(sums[key(best)].Ns)), fmt.Sprintf("%.2f", ofBest), strings.Join(targets, ", "), verdict)
		return nil
	}
	for _, c := range logger.Cases() {
		if err := add(c.Title, c, logger.Libraries()); err != nil {
			return "", err
		}
	}
	c := logger.SlogCase()
	if err := add("behind a \\*slog.Logger, "+c.Title, c, logger.SlogHandlers()); err != nil {
		return "", err
	}
	return t.String(), nil
}

func slogTable(sums map[measure.Key]measure.Summary) string {
	t := measure.NewTable("handler", "one goroutine, ns", "on each processor, ns", "allocations (bytes)")
	for _, h := range logger.SlogHandlers() {
		serial := sums[measure.Key{Case: logger.SlogCase().Name, Library: h.Name, Mode: logger.Serial}]
		parallel := sums[measure.Key{Case: logger.SlogCase().Name, Library: h.Name, Mode: logger.Parallel}]
		t.Row(h.Name, measure.Number(serial.Ns), measure.Number(parallel.Ns), allocations(serial))
	}
	return t.String()
}
