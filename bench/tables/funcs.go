package tables

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/rollway/rollway/bench/chaos"
	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/bench/internal/plot"
	"github.com/rollway/rollway/bench/reliability"
)

// funcs are the functions of the templates.
func (e *env) funcs() template.FuncMap {
	return template.FuncMap{
		// Raw results.
		"figures": e.figures, "document": e.document, "raw": raw, "rivals": rivals,

		// Numbers as text.
		"num": number, "small": small, "count": count, "whole": whole, "ms": millis, "us": micros, "mib": mib, "percent": percent,
		"spread": spread, "allocs": allocations, "yes": verdict, "change": change, "seconds": seconds,

		// Arithmetic and comparison; a share of nothing is 0.
		"add": func(a, b float64) float64 { return a + b }, "sub": func(a, b float64) float64 { return a - b },
		"mul": func(a, b float64) float64 { return a * b }, "div": func(a, b float64) float64 { return a / b },
		"share": func(a, b float64) float64 { return a / max(1, b) },
		"lt":    func(a, b float64) bool { return a < b }, "le": func(a, b float64) bool { return a <= b },
		"gt": func(a, b float64) bool { return a > b }, "ge": func(a, b float64) bool { return a >= b },
		"is": func(a, b float64) bool { return a == b }, "alike": func(a, b float64) bool { return a/b > 1/1.1 && a/b < 1.1 },
		"min": func(a ...float64) float64 { return slices.Min(a) }, "max": func(a ...float64) float64 { return slices.Max(a) },
		"round": math.Round, "float": func(n int) float64 { return float64(n) }, "inf": func() float64 { return math.Inf(1) },
		"gib": func(nsPerByte float64) float64 { return nsPerByte * (1 << 30) / 1e6 }, "tenth": func(v float64) float64 { return math.Round(10*v) / 10 },
		"least": func(values []float64) float64 { return slices.Min(values) }, "noisy": noisy, "programs": programs,
		"sum": sum, "most": func(values []float64) float64 { return slices.Max(values) }, "quotients": quotients, "cell": cell, "slower": slower, "growth": growth, "core": func(cores float64) string { return number(100*cores) + " %" },
		"pairs": func(runs int) int { return runs / 2 }, "minus": func(a, b []any) int { return len(a) - len(b) },
		"median": measure.Median, "quartile": func(values []float64) float64 { return slices.Sorted(slices.Values(values))[len(values)/4] },
		"rank": rank, "quiet": quietPairs,

		// Lists and texts.
		"list": func(items ...any) []any { return items }, "append": func(items []any, more ...any) []any { return append(slices.Clone(items), more...) },
		"strings": func(items ...string) []string { return items }, "floats": floats, "rows": rows, "where": where, "has": has, "first": first, "best": best, "perCPU": perCPU, "duration": duration, "pluck": pluck, "total": total, "unexpected": e.unexpected, "distinct": func(items []any, field string) []string {
			return distinct(items, func(it any) string { return it.(map[string]any)[field].(string) })
		}, "hasKey": func(m map[string]float64, key string) bool { _, ok := m[key]; return ok }, "find": find,
		"join": join, "target": target, "prefix": strings.HasPrefix, "replace": strings.ReplaceAll, "title": func(s string) string { return strings.ToUpper(s[:1]) + s[1:] },

		// Pictures and claims.
		"picture": e.picture, "bar": bar, "nobar": func(name string) plot.Bar { return plot.Bar{Name: name, None: true} }, "panel": panel, "bars": bars, "series": series, "lines": lines,
		"claim": e.claim, "claimed": e.claimed, "holds": holds, "allocationClaims": func() [][]string { return rows(allocationClaims) },
		"open": func(open, same bool) any {
			if open {
				return "open"
			}
			return same
		},
	}
}

// raw links to a file of raw results.
func raw(name string) string { return fmt.Sprintf("[%s.json](results/%s.json)", name, name) }

// rivals names the versions of the rival loggers, of those that a document has.
func rivals(versions map[string]any) string {
	return fmt.Sprintf("zerolog %s, zap %s, phuslu/log %s", versions["github.com/rs/zerolog"], versions["go.uber.org/zap"], versions["github.com/phuslu/log"])
}

// number formats v with three significant digits, or more where it has more
// before the point.
func number(v float64) string {
	switch a := math.Abs(v); {
	case a >= 100:
		return whole(v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

// small is number with two digits for what is below 0.1.
func small(v float64) string {
	if v < 0.1 {
		return fmt.Sprintf("%.2g", v)
	}
	return number(v)
}

// count formats a count: whole where it is whole to a hundredth.
func count(v float64) string {
	if math.Abs(v-math.Round(v)) < 0.01 {
		return whole(v)
	}
	return fmt.Sprintf("%.2f", v)
}

// whole formats v without a fraction.
func whole(v float64) string { return fmt.Sprintf("%.0f", v) }

// millis and micros format nanoseconds.
func millis(ns float64) string { return number(ns/1e6) + " ms" }

func micros(ns float64) string { return number(ns/1e3) + " µs" }

func mib(bytes float64) string { return number(bytes/(1<<20)) + " MiB" }

// seconds formats a time to the second.
func seconds(s float64) string { return time.Duration(s * 1e9).Round(time.Second).String() }

// percent is a share in percent, 0 of nothing.
func percent(part, whole float64) string {
	if part == 0 || whole == 0 {
		return "0"
	}
	return number(100*part/whole) + " %"
}

// change is how much greater after is than before, in percent.
func change(before, after float64) string {
	return strings.Replace(fmt.Sprintf("%+.0f %%", 100*(after/before-1)), "-", "−", 1)
}

// spread is a median with its minimum and maximum, divided by unit.
func spread(s measure.Summary, unit float64) string {
	return fmt.Sprintf("%s (%s–%s)", number(s.Ns/unit), number(s.MinNs/unit), number(s.MaxNs/unit))
}

// allocations are those of an operation, with their bytes.
func allocations(s measure.Summary) string { return fmt.Sprintf("%s (%.0f)", count(s.Allocs), s.Bytes) }

// verdict is the last cell of a target.
func verdict(reached bool) string {
	if reached {
		return "yes"
	}
	return "**no**"
}

// rank says how the rounds of a and b differ where a test cannot tell them apart,
// and nothing where it can.
func rank(a, b []float64) string {
	greater, p := measure.RankTest(a, b)
	if p < 0.05 {
		return ""
	}
	return fmt.Sprintf("not told apart: longer in %.0f %% of pairs of rounds, p = %.2f", 100*greater, p)
}

// rows splits a text into lines and each line at " | ".
func rows(text string) [][]string {
	var all [][]string
	for line := range strings.Lines(strings.TrimSpace(text)) {
		all = append(all, strings.Split(strings.TrimSpace(line), " | "))
	}
	return all
}

// target is the number in a column of a row, 0 for "-".
func target(row []string, column int) (float64, error) {
	if row[column] == "-" {
		return 0, nil
	}
	return strconv.ParseFloat(row[column], 64)
}

func join(items []any, separator string) string {
	var all []string
	for _, it := range items {
		all = append(all, fmt.Sprint(it))
	}
	return strings.Join(all, separator)
}

func floats(items []any) []float64 {
	var all []float64
	for _, it := range items {
		all = append(all, it.(float64))
	}
	return all
}

// where returns the items, objects of a document, whose fields have these values.
func where(items []any, pairs ...any) []any {
	var found []any
	for _, it := range items {
		ok := true
		for i := 0; i+1 < len(pairs); i += 2 {
			value := pairs[i+1]
			if n, is := value.(int); is {
				value = float64(n)
			}
			ok = ok && it.(map[string]any)[pairs[i].(string)] == value
		}
		if ok {
			found = append(found, it)
		}
	}
	return found
}

// find returns the first item of where.
func find(items []any, pairs ...any) (any, error) {
	if found := where(items, pairs...); len(found) > 0 {
		return found[0], nil
	}
	return nil, fmt.Errorf("no result of %v: measure again", pairs)
}

// pluck returns one number of each object: path names the fields that lead to it.
func pluck(items []any, path string) (values []float64, err error) {
	for _, it := range items {
		for name := range strings.SplitSeq(path, ".") {
			object, ok := it.(map[string]any)
			if !ok || object[name] == nil {
				return nil, fmt.Errorf("no %s: measure again", path)
			}
			it = object[name]
		}
		values = append(values, it.(float64))
	}
	return values, nil
}

// cell is a text as a cell of a table has it.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// slower reports whether a ms are more than b ms, and not only by a little.
func slower(a, b float64) bool { return a > 1.2*b && a > b+2 }

// exponent is the b of y = a·x^b, by least squares of logarithms.
func exponent(x, y []float64) (float64, error) {
	var n, sx, sy, sxx, sxy float64
	for i := range x {
		lx, ly := math.Log(x[i]), math.Log(y[i])
		n, sx, sy, sxx, sxy = n+1, sx+lx, sy+ly, sxx+lx*lx, sxy+lx*ly
	}
	if b := (n*sxy - sx*sy) / (n*sxx - sx*sx); !math.IsNaN(b) && !math.IsInf(b, 0) {
		return b, nil
	}
	return 0, errors.New("a fit needs times of two sizes: measure again")
}

// grown is how the times of a question grow with the corpus.
type grown struct {
	Times      []float64 // ms with a warm page cache, by size
	B          float64   // as of exponent
	Warm, Cold float64   // s for 1 TB, on the line through those of the two largest
}

func growth(runs []any, engine, query string) (g grown, err error) {
	var sizes, cold []float64
	for _, r := range runs {
		for _, a := range where(r.(map[string]any)["answers"].([]any), "engine", engine, "query", query) {
			answer := a.(map[string]any)
			warm, err := pluck(answer["warm"].([]any), "wall_s")
			once, err2 := pluck(answer["cold"].([]any), "wall_s")
			if err := errors.Join(err, err2); err != nil {
				return g, err
			}
			sizes = append(sizes, r.(map[string]any)["bytes"].(float64))
			g.Times = append(g.Times, 1000*measure.Median(warm))
			cold = append(cold, 1000*measure.Median(once))
		}
	}
	if g.B, err = exponent(sizes, g.Times); err != nil {
		return g, err
	}
	n := len(sizes)
	at := func(y []float64) float64 {
		slope := (y[n-1] - y[n-2]) / (sizes[n-1] - sizes[n-2])
		return (y[n-1] + max(0, slope)*(1e12-sizes[n-1])) / 1000
	}
	g.Warm, g.Cold = at(g.Times), at(cold)
	return g, nil
}

func sum(values []float64) (sum float64) {
	for _, v := range values {
		sum += v
	}
	return sum
}

// quotients divides each value of a by the one of b.
func quotients(a, b []float64) (all []float64) {
	for i := range min(len(a), len(b)) {
		all = append(all, a[i]/b[i])
	}
	return all
}

// quietPairs drops the pairs of runs, one after the other, in which other programs
// used much, if at least five pairs remain.
func quietPairs(runs []any) ([]any, error) {
	others, err := pluck(runs, "others_pct")
	var quiet []any
	for i := 0; i+1 < len(others); i += 2 {
		if max(others[i], others[i+1]) <= measure.NoisyPct {
			quiet = append(quiet, runs[i:i+2]...)
		}
	}
	if len(quiet) < 10 {
		return runs, err
	}
	return quiet, err
}

// first is the try of an act, or nil.
func first(tries []any, act string) any {
	if found := where(tries, "act", act); len(found) > 0 {
		return found[0]
	}
	return nil
}

// best is the run of a server at the highest rate that it held, or nil. It held a rate
// if it answered all requests and p99 was a second or less.
func best(runs []any, server string, events float64) (found any) {
	rate := 0.0
	for _, r := range where(runs, "server", server, "events", events) {
		run := r.(map[string]any)
		sent := run["sent"].(map[string]any)
		if sent["errors"] == 0.0 && sent["latency"].(map[string]any)["p99"].(float64) <= 1e9 && run["rate"].(float64) > rate {
			found, rate = r, run["rate"].(float64)
		}
	}
	return found
}

// perCPU is how many requests were acknowledged for each second of CPU time.
func perCPU(run map[string]any) float64 {
	cpu, ok := run["cpu_seconds"].(float64)
	if !ok {
		return 0
	}
	return run["sent"].(map[string]any)["acknowledged"].(float64) / cpu
}

// duration rounds nanoseconds to what matters.
func duration(ns float64) string {
	d := time.Duration(ns)
	switch {
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Microsecond).String()
}

// total adds up a number of all objects; what is true counts as one, what is missing
// as none.
func total(items []any, field string) (sum float64) {
	for _, it := range items {
		switch v := it.(map[string]any)[field].(type) {
		case float64:
			sum += v
		case bool:
			if v {
				sum++
			}
		}
	}
	return sum
}

// unexpected counts the tries of results in which something of ours did not do what it
// promises.
func (e *env) unexpected(name string) (int, error) {
	var r interface{ Unexpected() []error }
	switch name {
	case reliability.Kind:
		r = new(reliability.Results)
	case chaos.Kind:
		r = new(chaos.Results)
	}
	err := e.read(name, r)
	return len(r.Unexpected()), err
}

// noisy counts the samples in which other programs used much.
func noisy(samples []any) (n int, err error) {
	others, err := pluck(samples, "others_pct")
	for _, v := range others {
		if v > measure.NoisyPct {
			n++
		}
	}
	return n, err
}

// programs lists versions in the order of their programs' names.
func programs(versions map[string]any) (all []any) {
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		all = append(all, versions[name])
	}
	return all
}

// has reports whether an object of a document has a field that says something.
func has(object any, field string) bool {
	switch v := object.(map[string]any)[field].(type) {
	case nil:
		return false
	case bool:
		return v
	case float64:
		return v != 0
	}
	return true
}

// picture stores a picture by its path from the document's folder, and returns the
// Markdown that shows it.
func (e *env) picture(path, title, svg string) string {
	e.report.Pictures[path] = svg
	return fmt.Sprintf("![%s](%s)", title, path)
}

func bar(name string, value, low, high float64, own bool) plot.Bar {
	return plot.Bar{Name: name, Value: value, Low: low, High: high, Own: own}
}

func panel(title, unit string, items []any) any {
	if len(items) > 0 {
		if _, ok := items[0].(plot.Line); ok {
			return plot.LinePanel{Title: title, Lines: typed[plot.Line](items)}
		}
	}
	return plot.BarPanel{Title: title, Unit: unit, Bars: typed[plot.Bar](items)}
}

// series is a line of a picture.
func series(name string, x, y []any) plot.Line {
	return plot.Line{Name: name, X: floats(x), Y: floats(y)}
}

func bars(title, unit string, panels []any) string {
	return plot.Bars(title, unit, typed[plot.BarPanel](panels))
}

func lines(title, x string, panels []any) string {
	return plot.Lines(title, x, typed[plot.LinePanel](panels))
}

func typed[T any](items []any) []T {
	var all []T
	for _, it := range items {
		all = append(all, it.(T))
	}
	return all
}
