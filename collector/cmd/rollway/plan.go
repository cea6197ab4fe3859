package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/internal/plan"
)

var planCommand = &command{
	name:    "plan",
	summary: "choose slabs for a workload",
	args:    "-rate N -line SIZE -write-latency TIME | -from URL",
	help: `
Says how many slabs of which size a slab.Writer needs so that no producer waits
while its destination stalls. It prints the longest stall that is always
absorbed, the longest that can be absorbed, and whether the destination keeps up
at all. -slabs and -slab-size evaluate given slabs instead. docs/PLANNING.md
derives the figures.

-from measures the workload of a running process: it reads the process's expvar
page, which must publish the Stats of a slab.Writer, twice, -interval apart.
Other flags replace what was observed; -slab-size evaluates the slabs that the
process has now. Two saved pages work too, the earlier one first.

Give the rate of the busiest time. Sizes are bytes, or have a unit (64KiB,
64MiB, 10MB); the size of a line counts its newline.

The exit status is 1 if the workload is not met; stderr then says what it takes.

Examples:
  rollway plan -rate 50000 -line 256 -line-p99 1024 -write-latency 1ms -spike 50ms
  rollway plan -rate 50000 -line 256 -write-latency 1ms -spike 50ms -memory 512KiB
  rollway plan -rate 10000 -line 256 -write-latency 1ms -slabs 8 -slab-size 64KiB
  rollway plan -from http://127.0.0.1:6060/debug/vars -spike 50ms
  rollway plan -from before.json -from after.json -interval 1m
`,
	setup: setupPlan,
}

// planFlags are the flags of plan, as given.
type planFlags struct {
	workload plan.Workload
	given    map[string]bool // names of the flags on the command line
	size     int             // -slab-size
	count    int             // -slabs
	json     bool

	from     []string
	name     string        // of the value on the page
	interval time.Duration // between two readings
	timeout  time.Duration // of one reading
}

// sizeFlag declares a flag for a number of bytes.
func sizeFlag(flags *flag.FlagSet, dst *int, name, usage string) {
	flags.Func(name, usage, func(text string) error {
		n, err := config.ParseSize(text)
		if err != nil {
			return err
		}
		if int64(int(n)) != int64(n) {
			return fmt.Errorf("%q is more than this machine can address", text)
		}
		*dst = int(n)
		return nil
	})
}

func setupPlan(flags *flag.FlagSet) func(*call, []string) error {
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
	flags.Func("from", "measure the workload from the page at `URL`, or from a file", func(text string) error {
		p.from = append(p.from, text)
		return nil
	})
	flags.StringVar(&p.name, "name", "", "`NAME` of the Stats on the page (default: the only one)")
	flags.DurationVar(&p.interval, "interval", 10*time.Second, "`TIME` between the two readings")
	flags.BoolVar(&p.json, "json", false, "print one JSON object")
	return func(c *call, args []string) error {
		if len(args) > 0 {
			return usagef("unexpected argument %q", args[0])
		}
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
		p.workload = p.overlaid(seen.Workload)
		if !p.given["slabs"] {
			p.count = seen.Slabs
		}
	}
	chosen, err := p.plan()
	switch {
	case err != nil && seen != nil:
		return fmt.Errorf("for what %s says: %w", seen.Source, err)
	case err != nil:
		return usagef("%v", err)
	}
	var text string
	if seen != nil {
		seen.judge(chosen, p.fixed())
		text = seen.text() + "\n"
	}
	if p.json {
		err = printJSON(c.stdout, struct { // units are in the names of the members
			plan.Capacity
			Observed *observation `json:"observed,omitempty"`
		}{chosen, seen})
	} else {
		_, err = io.WriteString(c.stdout, text+planText(chosen))
	}
	if err != nil {
		return err
	}
	return chosen.Err()
}

// check reports missing and conflicting flags.
func (p *planFlags) check() error {
	if len(p.from) == 0 {
		for _, name := range []string{"rate", "line", "write-latency"} {
			if !p.given[name] {
				return usagef("-%s is missing", name)
			}
		}
		for _, name := range []string{"name", "interval"} {
			if p.given[name] {
				return usagef("-%s is for -from", name)
			}
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

func (p *planFlags) plan() (plan.Capacity, error) {
	if p.fixed() {
		return plan.Evaluate(p.workload, p.size, p.count)
	}
	return plan.Choose(p.workload)
}

// overlaid returns w with the values given by flags.
func (p *planFlags) overlaid(w plan.Workload) plan.Workload {
	if p.given["rate"] {
		w.Rate = p.workload.Rate
	}
	if p.given["line"] {
		w.LineSize = p.workload.LineSize
		w.LineSizeP99 = max(w.LineSizeP99, w.LineSize)
	}
	if p.given["line-p99"] {
		w.LineSizeP99 = p.workload.LineSizeP99
	}
	if p.given["write-latency"] {
		w.WriteLatency = p.workload.WriteLatency
	}
	if p.given["spike"] {
		w.Spike = p.workload.Spike
	}
	w.MemoryBudget = p.workload.MemoryBudget
	return w
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
