package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/slab"
)

var planCommand = &command{
	name:    "plan",
	summary: "choose slabs for a workload",
	args:    "-rate N -line SIZE -write-latency TIME [-spike TIME]",
	help: `
Says how many slabs of which size a slab.Writer needs so that no producer waits
while its destination stalls, and what they are good for: the stall that is
absorbed whenever it begins, the one that is at best, and whether the
destination keeps up at all. -slabs and -slab-size ask what given slabs do.
docs/PLANNING.md derives the figures.

The rate is that of the busiest time. Sizes are bytes, or have a unit (64KiB,
64MiB, 10MB); a line's size counts its newline.

The exit status is 1 if the workload is not met, and stderr says what it takes.

Examples:
  rollway plan -rate 50000 -line 256 -line-p99 1024 -write-latency 1ms -spike 50ms
  rollway plan -rate 50000 -line 256 -write-latency 1ms -spike 50ms -memory 512KiB
  rollway plan -rate 10000 -line 256 -write-latency 1ms -slabs 8 -slab-size 64KiB
`,
	setup: setupPlan,
}

// planFlags are the flags of plan, as given.
type planFlags struct {
	workload slab.Workload
	given    map[string]bool // names of the flags on the command line
	options  slab.Options    // with SlabSize and SlabCount only
	json     bool
	paper    bool // -published
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
	p := &planFlags{given: map[string]bool{}}
	w := &p.workload
	flags.Float64Var(&w.Rate, "rate", 0, "`N` lines come in a second")
	sizeFlag(flags, &w.LineSize, "line", "mean `SIZE` of a line")
	sizeFlag(flags, &w.LineSizeP99, "line-p99", "99th percentile of the lines' `SIZE` (default 4 × -line)")
	flags.DurationVar(&w.WriteLatency, "write-latency", 0, "`TIME` that one Write of the destination takes")
	flags.DurationVar(&w.Spike, "spike", 0, "longest `TIME` that the destination stalls")
	sizeFlag(flags, &w.MemoryBudget, "memory", "most `SIZE` of all slabs together (default: no bound)")
	sizeFlag(flags, &p.options.SlabSize, "slab-size", "do not choose: slabs of this `SIZE` (default 64KiB)")
	flags.IntVar(&p.options.SlabCount, "slabs", 0, "do not choose: `N` slabs (default 8)")
	flags.BoolVar(&p.json, "json", false, "print one JSON object")
	flags.BoolVar(&p.paper, "published", false, "print the tables of docs/PLANNING.md")
	return func(c *call, args []string) error {
		if len(args) > 0 {
			return usagef("unexpected argument %q", args[0])
		}
		flags.Visit(func(f *flag.Flag) { p.given[f.Name] = true })
		if p.paper {
			if len(p.given) > 1 {
				return usagef("-published goes alone")
			}
			_, err := io.WriteString(c.stdout, publishedTables())
			return err
		}
		return p.run(c)
	}
}

// run plans for the workload of the flags.
func (p *planFlags) run(c *call) error {
	for _, name := range []string{"rate", "line", "write-latency"} {
		if !p.given[name] {
			return usagef("-%s is missing", name)
		}
	}
	given := p.given["slabs"] || p.given["slab-size"]
	if given && p.given["memory"] {
		return usagef("-memory is for choosing slabs, -slabs and -slab-size for those that are there")
	}
	var plan slab.Capacity
	var err error
	if given {
		plan, err = slab.Evaluate(p.workload, p.options)
	} else {
		plan, err = slab.Plan(p.workload)
	}
	if err != nil {
		return usagef("%v", err)
	}
	if p.json {
		err = printJSON(c.stdout, planObject(plan))
	} else {
		_, err = io.WriteString(c.stdout, planText(plan))
	}
	if err != nil {
		return err
	}
	return plan.Err()
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
}

type workloadJSON struct {
	Rate         float64       `json:"rate_lines_per_second"`
	LineSize     int           `json:"line_bytes"`
	LineSizeP99  int           `json:"line_p99_bytes"`
	WriteLatency time.Duration `json:"write_latency_ns"`
	Spike        time.Duration `json:"spike_ns"`
	MemoryBudget int           `json:"memory_budget_bytes"` // 0: none
}

func planObject(p slab.Capacity) planJSON {
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
		Met:        p.Limit == slab.LimitNone,
		Limit:      p.Limit.String(),
		Needed:     p.Needed,
	}
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
