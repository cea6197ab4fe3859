package main

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/internal/plan"
)

var planCommand = &command{
	name:    "plan",
	summary: "choose slabs for a workload",
	args:    "-rate N -line SIZE -write-latency TIME | -from URL",
	help: `
Says how many slabs a slab.Writer needs, and how large, so that no producer
waits while its destination stalls. It prints the longest stall that is always
absorbed, the longest that can be absorbed, and whether the destination keeps up
at all. -slabs and -slab-size evaluate given slabs. docs/PLANNING.md derives the
figures.

-from measures a running process: it reads the process's expvar page, which must
publish the Stats of a slab.Writer, twice, -interval apart. Two saved pages work
too, the earlier one first. Other flags replace what was observed.

Give the rate of the busiest time. Sizes are bytes, or have a unit (64KiB,
64MiB, 10MB); the size of a line counts its newline.

The exit status is 1 if the workload is not met; stderr then says what it takes.

Examples:
  rollway plan -rate 50000 -line 256 -line-p99 1024 -write-latency 1ms -spike 50ms
  rollway plan -rate 10000 -line 256 -write-latency 1ms -slabs 8 -slab-size 64KiB
  rollway plan -from http://127.0.0.1:6060/debug/vars -spike 50ms
  rollway plan -from before.json -from after.json -interval 1m
`,
	setup: setupPlan,
}

type planFlags struct {
	workload plan.Workload
	given    map[string]bool // names of the flags on the command line
	size     int             // -slab-size
	count    int             // -slabs

	from     []string
	name     string        // of the value on the page
	interval time.Duration // between two readings
	timeout  time.Duration // of one reading
}

func setupPlan(flags *flag.FlagSet) action {
	p := &planFlags{given: map[string]bool{}, timeout: 10 * time.Second}
	w := &p.workload
	flags.Float64Var(&w.Rate, "rate", 0, "`N` lines a second arrive")
	sizeFlag(flags, &w.LineSize, "line", "mean `SIZE` of a line")
	sizeFlag(flags, &w.LineSizeP99, "line-p99", "99th percentile of the lines' `SIZE` (default 4 × -line)")
	flags.DurationVar(&w.WriteLatency, "write-latency", 0, "`TIME` that one Write of the destination takes")
	flags.DurationVar(&w.Spike, "spike", 0, "longest `TIME` that the destination stalls")
	sizeFlag(flags, &w.MemoryBudget, "memory", "upper bound for the `SIZE` of all slabs together (default: none)")
	sizeFlag(flags, &p.size, "slab-size", "evaluate slabs of this `SIZE` (default 64KiB)")
	flags.IntVar(&p.count, "slabs", 0, "evaluate `N` slabs (default 8)")
	listFlag(flags, &p.from, "from", "measure the workload from the page at `URL`, or from a file")
	flags.StringVar(&p.name, "name", "", "`NAME` of the Stats on the page (default: the only one)")
	flags.DurationVar(&p.interval, "interval", 10*time.Second, "`TIME` between the two readings")
	return func(c *call, _ []string) error {
		flags.Visit(func(f *flag.Flag) { p.given[f.Name] = true })
		return p.run(c)
	}
}

// run plans for the workload given by flags or observed.
func (p *planFlags) run(c *call) error {
	if err := p.check(); err != nil {
		return err
	}
	var seen *observation
	if len(p.from) > 0 {
		var err error
		ctx, stop := interruptible()
		seen, err = p.observe(ctx)
		stop()
		if err != nil {
			return interrupted(ctx, err)
		}
		p.overlay(seen)
	}
	var chosen plan.Capacity
	var err error
	if p.fixed() {
		chosen, err = plan.Evaluate(p.workload, p.size, p.count)
	} else {
		chosen, err = plan.Choose(p.workload)
	}
	switch {
	case err != nil && seen != nil:
		return fmt.Errorf("for what %s says: %w", seen.Source, err)
	case err != nil:
		return usagef("%v", err)
	}
	text := ""
	if seen != nil {
		seen.judge(chosen, p.fixed())
		text = seen.text() + "\n"
	}
	err = c.show(struct { // units are in the names of the members
		plan.Capacity
		Observed *observation `json:"observed,omitempty"`
	}{chosen, seen}, text+planText(chosen))
	return cmp.Or(err, chosen.Err())
}

// check reports missing and conflicting flags.
func (p *planFlags) check() error {
	for _, name := range []string{"rate", "line", "write-latency"} {
		if len(p.from) == 0 && !p.given[name] {
			return usagef("-%s is missing", name)
		}
	}
	for _, name := range []string{"name", "interval"} {
		if len(p.from) == 0 && p.given[name] {
			return usagef("-%s is for -from", name)
		}
	}
	switch {
	case p.fixed() && p.given["memory"]:
		return usagef("-memory bounds the choice of slabs; -slabs and -slab-size leave no choice")
	case len(p.from) > 2:
		return usagef("-from was given %d times: once, or twice for two saved pages", len(p.from))
	case p.interval <= 0 || p.interval > time.Hour:
		return usagef("-interval is %v, allowed is more than 0, up to 1h", p.interval)
	}
	return nil
}

// fixed reports whether flags give the slabs.
func (p *planFlags) fixed() bool { return p.given["slabs"] || p.given["slab-size"] }

// overlay takes from seen what flags do not give.
func (p *planFlags) overlay(seen *observation) {
	w, o := &p.workload, seen.Workload
	unless(p.given["rate"], &w.Rate, o.Rate)
	unless(p.given["line"], &w.LineSize, o.LineSize)
	unless(p.given["line-p99"], &w.LineSizeP99, max(o.LineSizeP99, w.LineSize))
	unless(p.given["write-latency"], &w.WriteLatency, o.WriteLatency)
	unless(p.given["spike"], &w.Spike, o.Spike)
	unless(p.given["slabs"], &p.count, seen.Stats.Slabs)
}

func unless[T any](given bool, dst *T, v T) {
	if !given {
		*dst = v
	}
}

// A sheet is a text of titled rows.
type sheet struct{ strings.Builder }

func (s *sheet) title(format string, args ...any) {
	if s.Len() > 0 {
		s.WriteByte('\n')
	}
	fmt.Fprintf(s, format+"\n", args...)
}

func (s *sheet) row(name, format string, args ...any) {
	fmt.Fprintf(s, "  %-16s %s\n", name, fmt.Sprintf(format, args...))
}

// planText shows p for people, with the options to paste.
func planText(p plan.Capacity) string {
	var s sheet
	s.title("workload")
	w := p.Workload
	s.row("rate", "%s, %s", perSecond(w.Rate, "lines"), megabytes(p.Demand))
	s.row("line", "%s B in the mean, %s B at the 99th percentile", count(w.LineSize), count(w.LineSizeP99))
	s.row("a write takes", "%v", w.WriteLatency)
	s.row("spike to absorb", "%v", w.Spike)
	if w.MemoryBudget > 0 {
		s.row("memory budget", "%v", config.Size(w.MemoryBudget))
	}
	s.title("slabs")
	s.row("geometry", "%d × %v = %v", p.SlabCount, config.Size(p.SlabSize), config.Size(p.Memory))
	switch {
	case p.Limit == plan.LimitThroughput:
		s.row("guaranteed", "nothing: the destination cannot keep up")
	case p.SlabCount == 2:
		s.row("guaranteed", "nothing: of two slabs one is being written and one filled")
	default:
		s.row("guaranteed", "a stall of %s, whenever it begins", shortTime(p.Guaranteed))
	}
	s.row("best case", "a stall of %s, if it begins with everything empty", shortTime(p.BestCase))
	ratio := "more than 1,000 ×"
	if p.Headroom() < 1000 {
		ratio = fmt.Sprintf("%.2g ×", p.Headroom())
	}
	s.row("throughput", "%s, %s what comes", megabytes(p.Throughput), ratio)
	if p.Recovery > 0 && w.Spike > 0 {
		s.row("recovery", "%s after a stall the next one may come", shortTime(p.Recovery+lastFigure(p.Recovery)-1))
	}
	s.row("a full slab", "%s lines of the mean size in one Write", count(p.SlabSize/w.LineSize))
	fmt.Fprintf(&s, "\n  slab.Options{\n      SlabSize:  %s,\n      SlabCount: %d,\n  }\n", goSize(p.SlabSize), p.SlabCount)
	return s.String()
}

// goSize writes n as one would in Go.
func goSize(n int) string {
	for _, shift := range []int{20, 10} {
		if n%(1<<shift) == 0 {
			return fmt.Sprintf("%d << %d", n>>shift, shift)
		}
	}
	return fmt.Sprint(n)
}

// megabytes formats a rate in bytes a second.
func megabytes(rate float64) string {
	if rate < 999.5 {
		return fmt.Sprintf("%.3g B/s", rate)
	}
	return byteCount(int64(min(rate, math.MaxInt64/2))) + "/s"
}

// perSecond formats a rate of whole things, with three figures if it is small.
func perSecond(rate float64, noun string) string {
	if rate < 999.5 { // from there on three figures are 1e+03
		return fmt.Sprintf("%.3g %s/s", rate, noun)
	}
	return fmt.Sprintf("%s %s/s", count(max(1000, int(rate))), noun)
}
