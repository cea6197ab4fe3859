package allocstudy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/bench/internal/report"
)

// Kind is the name of the results and of their place in the document.
const Kind = "allocstudy"

// Results are the raw results. The Library of a sample is its toolchain.
type Results struct {
	measure.Results
	Counts  []Count  `json:"counts"`
	Escapes []Escape `json:"escapes"`
}

// Toolchains lists the toolchains of the results as they were given.
func (r *Results) Toolchains() []string {
	var names []string
	for _, c := range r.Counts {
		if !slices.Contains(names, c.Go) {
			names = append(names, c.Go)
		}
	}
	return names
}

// Counted is what a case allocates with a toolchain.
func (r *Results) Counted(name, toolchain string) Count {
	i := slices.IndexFunc(r.Counts, func(c Count) bool { return c.Case == name && c.Go == toolchain })
	if i < 0 {
		report.Miss("%s with %s", name, toolchain)
	}
	return r.Counts[i]
}

// Tables is the text that goes between the markers of the document.
func Tables(r *Results) string {
	f := report.FiguresOf(r.Results)
	count := func(c Case, g string) string {
		n := r.Counted(c.Name, g)
		return fmt.Sprintf("%s (%.0f)", report.Count(n.Allocs), n.Bytes)
	}
	times := func(mode string) func(Case, string) string {
		return func(c Case, g string) string { return report.Spread(f.At(c.Name, g, mode), 1) }
	}
	parallel := slices.DeleteFunc(Cases(), func(c Case) bool { return !c.Parallel })
	return fmt.Sprintf("\n%s\nRaw results: %s, made by `%s`.\n", report.Circumstances(&r.Results), report.Raw("allocstudy.json"), r.Command) +
		r.published(f).Titled("**The article's table, measured again**: RunParallel with the constant \"test\", ns per call (allocations, bytes)") +
		r.grid(Cases(), count).Titled("**Allocations per call (bytes)**, counted without collections") +
		r.grid(Cases(), times(Serial)).Titled("**One goroutine, ns per call: median (least to most)**") +
		r.grid(parallel, times(Parallel)).Titled("**RunParallel, ns per call: median (least to most)**") +
		r.escapes().Titled("**What `go build -gcflags=-m` says about the designs**: where a value goes. It is what the compiler must assume, not what a call allocates.") + "\n"
}

// published is the article's own table: BenchmarkEvent and
// BenchmarkEventWithInterface with 16 processors and the message "test". Of the
// interface without a pool it prints no figures but a picture.
func (r *Results) published(f *report.Figures) *report.Table {
	article := map[string][2]string{
		"no pool":                {"plain/const", "21.30 (1, 8)"},
		"pool":                   {"pooled/const", "19.17, later 17.45 (0, 0)"},
		"interface over pool":    {"pooliface/const", "17.18 (0, 0)"},
		"interface without pool": {"iface/const", "–"},
	}
	return report.Grid("design", []string{"no pool", "pool", "interface over pool", "interface without pool"}, append([]string{"article"}, r.Toolchains()...), func(design, column string) string {
		if column == "article" {
			return article[design][1]
		}
		s := f.At(article[design][0], column, Parallel)
		return fmt.Sprintf("%s (%s, %.0f)", report.Number(s.Ns), report.Count(s.Allocs), s.Bytes)
	})
}

// grid has a row for each case and a column for each toolchain.
func (r *Results) grid(cases []Case, cell func(c Case, toolchain string) string) *report.Table {
	columns := []report.Column[Case]{{Head: "case", Cell: func(c Case) string { return c.Title }}}
	for _, g := range r.Toolchains() {
		columns = append(columns, report.Column[Case]{Head: g, Cell: func(c Case) string { return cell(c, g) }})
	}
	return report.Of(cases, columns...)
}

// escapes has a row for each value of which a compiler says something.
func (r *Results) escapes() *report.Table {
	var order []Escape
	said := map[string]map[string]string{} // by key and toolchain
	for _, e := range r.Escapes {
		if said[e.key()] == nil {
			said[e.key()] = map[string]string{}
			order = append(order, e)
		}
		if said[e.key()][e.Go] != NoCopy { // it says "does not escape" of the same bytes
			said[e.key()][e.Go] = e.Verdict
		}
	}
	t := report.NewTable(append([]string{"function", "value"}, r.Toolchains()...)...)
	last := ""
	for _, c := range Cases() { // the designs in the order of the cases
		if c.Group == last {
			continue
		}
		last = c.Group
		for _, e := range order {
			if !strings.HasPrefix(e.Func, c.Group+".") || strings.Contains(e.What, "Time.In") { // inlined from package time
				continue
			}
			row := []string{"`" + e.Func + "`", "`" + e.What + "`"}
			for _, g := range r.Toolchains() {
				row = append(row, report.Dash(said[e.key()][g]))
			}
			t.Row(row...)
		}
	}
	return t
}
