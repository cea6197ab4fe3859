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
while its destination stalls, and what they are good for: the stall that is
absorbed whenever it begins, the one that is at best, and whether the
destination keeps up at all. -slabs and -slab-size ask what given slabs do.
docs/PLANNING.md derives the figures.

-from reads the workload off a running process: its page of expvar, which must
have the Stats of a slab.Writer on it, twice with -interval between. It says
what the process really sees, and plans for that; other flags then replace what
was observed, and -slab-size says what the slabs that it has now are good for.
Two files with saved pages do as well, the earlier one first.

The rate is that of the busiest time. Sizes are bytes, or have a unit (64KiB,
64MiB, 10MB); a line's size counts its newline.

The exit status is 1 if the workload is not met, and stderr says what it takes.

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
	flags.Float64Var(&w.Rate, "rate", 0, "`N` lines come in a second")
	sizeFlag(flags, &w.LineSize, "line", "mean `SIZE` of a line")
	sizeFlag(flags, &w.LineSizeP99, "line-p99", "99th percentile of the lines' `SIZE` (default 4 × -line)")
	flags.DurationVar(&w.WriteLatency, "write-latency", 0, "`TIME` that one Write of the destination takes")
	flags.DurationVar(&w.Spike, "spike", 0, "longest `TIME` that the destination stalls")
	sizeFlag(flags, &w.MemoryBudget, "memory", "most `SIZE` of all slabs together (default: no bound)")
	sizeFlag(flags, &p.size, "slab-size", "do not choose: slabs of this `SIZE` (default 64KiB)")
	flags.IntVar(&p.count, "slabs", 0, "do not choose: `N` slabs (default 8)")
	flags.Func("from", "read the workload off the page at `URL`, or off a file", func(text string) error {
		p.from = append(p.from, text)
		return nil
	})
	flags.StringVar(&p.name, "name", "", "`NAME` of the value on the page that is the Stats (default: the only one)")
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

// run plans for the workload of the flags, or the one observed.
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
		p.workload = p.overlaid(seen.workload)
		if !p.given["slabs"] {
			p.count = seen.after.Slabs
		}
	}
	chosen, err := p.plan()
	switch {
	case err != nil && seen != nil:
		return fmt.Errorf("for what %s says: %w", seen.source, err)
	case err != nil:
		return usagef("%v", err)
	}
	var text string
	object := planObject(chosen)
	if seen != nil {
		seen.judge(chosen, p.fixed())
		text = seen.text() + "\n"
		object.Observed = seen.object()
	}
	if p.json {
		err = printJSON(c.stdout, object)
	} else {
		_, err = io.WriteString(c.stdout, text+planText(chosen))
	}
	if err != nil {
		return err
	}
	return chosen.Err()
}

// check says which flags are missing or exclude each other.
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
		return usagef("-memory is for choosing slabs, -slabs and -slab-size for those that are there")
	case len(p.from) > 2:
		return usagef("-from was given %d times: once, or twice for two saved pages", len(p.from))
	case p.interval <= 0 || p.interval > time.Hour:
		return usagef("-interval is %v, allowed is more than 0, up to 1h", p.interval)
	}
	return nil
}

// fixed reports whether there is nothing to choose.
func (p *planFlags) fixed() bool { return p.given["slabs"] || p.given["slab-size"] }

func (p *planFlags) plan() (plan.Capacity, error) {
	if p.fixed() {
		return plan.Evaluate(p.workload, p.size, p.count)
	}
	return plan.Choose(p.workload)
}

// overlaid is w with what flags say about it.
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

// planJSON is what -json prints. Units are in the names.
type planJSON struct {
	Workload workloadJSON `json:"workload"`

	SlabSize   int           `json:"slab_size_bytes"`
	SlabCount  int           `json:"slab_count"`
	Memory     int           `json:"memory_bytes"`
	Guaranteed time.Duration `json:"guaranteed_ns"`
	BestCase   time.Duration `json:"best_case_ns"`
	Demand     float64       `json:"demand_bytes_per_second"`
	Throughput float64       `json:"throughput_bytes_per_second"`
	Recovery   time.Duration `json:"recovery_ns"`
	Met        bool          `json:"met"`
	Limit      string        `json:"limit"`
	Needed     int           `json:"needed_bytes"`

	Observed *observedJSON `json:"observed,omitempty"`
}

type workloadJSON struct {
	Rate         float64       `json:"rate_lines_per_second"`
	LineSize     int           `json:"line_bytes"`
	LineSizeP99  int           `json:"line_p99_bytes"`
	WriteLatency time.Duration `json:"write_latency_ns"`
	Spike        time.Duration `json:"spike_ns"`
	MemoryBudget int           `json:"memory_budget_bytes"` // 0: none
}

func planObject(p plan.Capacity) planJSON {
	return planJSON{
		Workload:   workloadJSON(p.Workload),
		SlabSize:   p.SlabSize,
		SlabCount:  p.SlabCount,
		Memory:     p.Memory,
		Guaranteed: p.Guaranteed,
		BestCase:   p.BestCase,
		Demand:     p.Demand,
		Throughput: p.Throughput,
		Recovery:   p.Recovery,
		Met:        p.Limit == plan.LimitNone,
		Limit:      p.Limit.String(),
		Needed:     p.Needed,
	}
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
