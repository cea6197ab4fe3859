package allocstudy

import (
	"fmt"
	"strings"

	"github.com/rollway/rollway/bench/internal/measure"
)

// published is the article's own table: BenchmarkEvent and
// BenchmarkEventWithInterface with 16 processors and the message "test". Of
// the interface without a pool it prints no figures but a picture.
var published = []struct{ title, name, article string }{
	{"no pool", "plain/const", "21.30 (1, 8)"},
	{"pool", "pooled/const", "19.17, later 17.45 (0, 0)"},
	{"interface over pool", "pooliface/const", "17.18 (0, 0)"},
	{"interface without pool", "iface/const", "–"},
}

// Tables is the text that goes between the markers of the document.
func (r *Results) Tables() (string, error) {
	t := tables{Results: r, goes: r.Toolchains(), sums: r.Summarize(), counts: map[measure.Key]Count{}}
	for _, c := range r.Counts {
		t.counts[measure.Key{Case: c.Case, Library: c.Go}] = c
	}
	for _, c := range Cases() {
		for _, g := range t.goes {
			if _, ok := t.counts[measure.Key{Case: c.Name, Library: g}]; !ok {
				return "", fmt.Errorf("%s with %s was not counted: measure again", c.Name, g)
			}
			if _, ok := t.sums[measure.Key{Case: c.Name, Library: g, Mode: Serial}]; !ok {
				return "", fmt.Errorf("%s with %s has no samples: measure again", c.Name, g)
			}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s\nRaw results: [allocstudy.json](results/allocstudy.json), made by `%s`.\n", r.Circumstances(), r.Command)
	fmt.Fprintf(&b, "\n**The article's table, measured again**: RunParallel with the constant \"test\", ns per call (allocations, bytes)\n\n%s", t.published())
	fmt.Fprintf(&b, "\n**What the article says, and what is so**\n\n%s", t.claims())
	fmt.Fprintf(&b, "\n**Allocations per call (bytes)**, counted without collections\n\n%s", t.grid(Serial, func(c Count, _ measure.Summary) string {
		return fmt.Sprintf("%s (%.0f)", measure.Count(c.Allocs), c.Bytes)
	}))
	fmt.Fprintf(&b, "\n**One goroutine, ns per call: median (least to most)**\n\n%s", t.grid(Serial, times))
	fmt.Fprintf(&b, "\n**RunParallel, ns per call: median (least to most)**\n\n%s", t.grid(Parallel, times))
	fmt.Fprintf(&b, "\n**What `go build -gcflags=-m` says about the designs**: where a value goes. It is what the compiler must assume, not what a call allocates.\n\n%s\n", t.escapes())
	return b.String(), nil
}

// tables is what the tables are made of.
type tables struct {
	*Results
	goes   []string
	sums   map[measure.Key]measure.Summary
	counts map[measure.Key]Count
}

func times(_ Count, s measure.Summary) string {
	return fmt.Sprintf("%s (%s–%s)", measure.Number(s.Ns), measure.Number(s.MinNs), measure.Number(s.MaxNs))
}

func (t tables) published() string {
	out := measure.NewTable(append([]string{"design", "article"}, t.goes...)...)
	for _, p := range published {
		row := []string{p.title, p.article}
		for _, g := range t.goes {
			s := t.sums[measure.Key{Case: p.name, Library: g, Mode: Parallel}]
			row = append(row, fmt.Sprintf("%s (%s, %.0f)", measure.Number(s.Ns), measure.Count(s.Allocs), s.Bytes))
		}
		out.Row(row...)
	}
	return out.String()
}

func (t tables) claims() string {
	head := append([]string{"the article says"}, t.goes...)
	out := measure.NewTable(append(head, "because")...)
	for _, c := range Claims() {
		row := []string{c.Says}
		for _, g := range t.goes {
			verdict := "**no**"
			if c.Holds(func(name string) Count { return t.counts[measure.Key{Case: name, Library: g}].rounded() }) {
				verdict = "holds"
			}
			row = append(row, verdict)
		}
		out.Row(append(row, c.Because)...)
	}
	return out.String()
}

// grid has a row for each case that was measured in the mode.
func (t tables) grid(mode string, cell func(Count, measure.Summary) string) string {
	out := measure.NewTable(append([]string{"case"}, t.goes...)...)
	for _, c := range Cases() {
		if mode == Parallel && !c.Parallel {
			continue
		}
		row := []string{c.Title}
		for _, g := range t.goes {
			row = append(row, cell(t.counts[measure.Key{Case: c.Name, Library: g}], t.sums[measure.Key{Case: c.Name, Library: g, Mode: mode}]))
		}
		out.Row(row...)
	}
	return out.String()
}

// escapes has a row for each value of which a compiler says something.
func (t tables) escapes() string {
	var order []Escape
	said := map[string]map[string]string{} // by key and toolchain
	for _, e := range t.Escapes {
		if said[e.key()] == nil {
			said[e.key()] = map[string]string{}
			order = append(order, e)
		}
		if said[e.key()][e.Go] != NoCopy { // it says "does not escape" of the same bytes
			said[e.key()][e.Go] = e.Verdict
		}
	}
	out := measure.NewTable(append([]string{"function", "value"}, t.goes...)...)
	for _, d := range designs() {
		for _, e := range order {
			if !strings.HasPrefix(e.Func, d+".") || strings.Contains(e.What, "Time.In") { // inlined from package time
				continue
			}
			row := []string{"`" + e.Func + "`", "`" + e.What + "`"}
			for _, g := range t.goes {
				verdict := said[e.key()][g]
				if verdict == "" {
					verdict = "–"
				}
				row = append(row, verdict)
			}
			out.Row(row...)
		}
	}
	return out.String()
}

// designs lists the packages in the order of the cases.
func designs() []string {
	var names []string
	for _, c := range Cases() {
		if len(names) == 0 || names[len(names)-1] != c.Group {
			names = append(names, c.Group)
		}
	}
	return names
}
