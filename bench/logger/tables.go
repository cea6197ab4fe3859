package logger

import (
	"fmt"
	"strings"

	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/bench/internal/report"
)

// Tables makes the tables of the logger.
func Tables(r *measure.Results) string {
	f := report.FiguresOf(*r)
	text := "\n" + report.Circumstances(r) + fmt.Sprintf("\nVersions: zerolog %s, zap %s (its slog handler: zap/exp %s), phuslu/log %s, log/slog of %s. Raw results: %s.\n",
		r.Versions["github.com/rs/zerolog"], r.Versions["go.uber.org/zap"], r.Versions["go.uber.org/zap/exp"], r.Versions["github.com/phuslu/log"], r.Go, report.Raw("logger.json"))
	text += targetTable(f).Titled("**Against the targets** (serial)")
	for _, table := range []struct {
		title, mode string
		cell        func(measure.Summary) string
	}{
		{"**One goroutine, ns per call: median (least to most)**", Serial, func(s measure.Summary) string { return report.Spread(s, 1) }},
		{"**A goroutine on each processor, ns per call: median (least to most)**", Parallel, func(s measure.Summary) string { return report.Spread(s, 1) }},
		{"**CPU ns per call, parallel** (user and system time of the process)", Parallel, func(s measure.Summary) string { return report.Number(s.CPUNs) }},
		{"**Allocations per call (bytes)**", Serial, report.Allocations},
		{"**Length of a line in bytes**", Serial, func(s measure.Summary) string { return report.Whole(s.Extra["line_bytes"]) }},
	} {
		text += grid(f, table.mode, table.cell).Titled("%s", table.title)
	}
	return text + slogTable(f).Titled("**Behind a \\*slog.Logger: LogAttrs with 6 mixed attributes**") + "\n"
}

func grid(f *report.Figures, mode string, cell func(measure.Summary) string) *report.Table {
	var columns []report.Column[Library]
	columns = append(columns, report.Column[Library]{Head: "library", Cell: func(l Library) string { return l.Name }})
	for _, c := range Cases() {
		columns = append(columns, report.Column[Library]{Head: c.Title, Cell: func(l Library) string {
			if s, ok := f.Get(c.Name, l.Name, mode); ok {
				return cell(s)
			}
			return "–"
		}})
	}
	return report.Of(Libraries(), columns...)
}

func slogTable(f *report.Figures) *report.Table {
	column := func(head, mode string, cell func(measure.Summary) string) report.Column[Library] {
		return report.Column[Library]{Head: head, Cell: func(l Library) string { return cell(f.At(caseSlog, l.Name, mode)) }}
	}
	ns := func(s measure.Summary) string { return report.Number(s.Ns) }
	return report.Of(SlogHandlers(), report.Column[Library]{Head: "handler", Cell: func(l Library) string { return l.Name }},
		column("one goroutine, ns", Serial, ns), column("on each processor, ns", Parallel, ns), column("allocations (bytes)", Serial, report.Allocations))
}

// targetTable compares package rollway with its targets, by the ratios and
// differences within a round: what the machine did for minutes is not in them.
func targetTable(f *report.Figures) *report.Table {
	t := report.NewTable("case", "rollway", "best other", "rollway ÷ best other", "target", "reached")
	add := func(title string, c Case, libraries []Library) {
		name := libraries[0].Name
		key := func(library string) measure.Key { return measure.Key{Case: c.Name, Library: library, Mode: Serial} }
		own := f.At(c.Name, name, Serial)
		best := Best(f, c, libraries[1:])
		ofBest, _ := f.Ratio(key(name), key(best))
		var targets []string
		reached := true
		want := func(text string, is, most float64) {
			targets = append(targets, text)
			reached = reached && is <= most // false for NaN: without samples nothing is reached
		}
		if c.TargetNs > 0 {
			want(fmt.Sprintf("≤ %s ns", report.Count(c.TargetNs)), own.Ns, c.TargetNs)
		}
		if c.TargetOfBest > 0 {
			want(fmt.Sprintf("≤ %.2f × best", c.TargetOfBest), ofBest, c.TargetOfBest)
		}
		if c.TargetOfReference > 0 {
			ratio, _ := f.Ratio(key(name), key(Reference))
			want(fmt.Sprintf("≤ %.2f × %s (is %.2f)", c.TargetOfReference, Reference, ratio), ratio, c.TargetOfReference)
		}
		if c.TargetOverMessageNs > 0 {
			over, _ := f.Difference(key(name), measure.Key{Case: caseMessage, Library: name, Mode: Serial})
			want(fmt.Sprintf("≤ %s ns more than message (is %s)", report.Count(c.TargetOverMessageNs), report.Number(over)), over, c.TargetOverMessageNs)
		}
		t.Row(title, report.Number(own.Ns)+" ns", fmt.Sprintf("%s %s ns", best, report.Number(f.At(c.Name, best, Serial).Ns)), fmt.Sprintf("%.2f", ofBest), strings.Join(targets, ", "), report.Verdict(reached))
	}
	for _, c := range Cases() {
		add(c.Title, c, Libraries())
	}
	add("behind a \\*slog.Logger, "+SlogCase().Title, SlogCase(), SlogHandlers())
	return t
}

// Best is the fastest of some loggers in a case.
func Best(f *report.Figures, c Case, libraries []Library) string {
	best := ""
	for _, l := range libraries {
		if s, ok := f.Get(c.Name, l.Name, Serial); ok && !l.Reference && (best == "" || s.Ns < f.At(c.Name, best, Serial).Ns) {
			best = l.Name
		}
	}
	if best == "" {
		report.Miss("others, %s", c.Name)
	}
	return best
}
