package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rollway/rollway/bench/allocstudy"
	"github.com/rollway/rollway/bench/direct"
	"github.com/rollway/rollway/bench/ingest"
	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/bench/latency"
	"github.com/rollway/rollway/bench/logger"
	"github.com/rollway/rollway/bench/relay"
	"github.com/rollway/rollway/bench/writers"
)

// programs lists all.
func programs() []program {
	return append([]program{
		{"logger", runLogger}, {"writers", runWriters}, {"latency", runLatency}, {"direct", runDirect}, {"direct-headline", runHeadline},
		{"ingest", runIngest}, {"alloc", runAlloc}, {"relay", runRelay}, {"query", runQuery},
	}, faultPrograms()...)
}

func runLogger(a *arguments) error {
	var plan measure.Plan
	a.IntVar(&plan.Rounds, "rounds", 9, "how often everything is measured; 7 or more for tables that count")
	a.DurationVar(&plan.Time, "time", 150*time.Millisecond, "how long one sample takes")
	if err := a.parse(func() bool { return plan.Rounds > 0 && plan.Time > 0 }); err != nil {
		return err
	}
	if a.short {
		plan = measure.Plan{Rounds: 1, Ops: 20_000}
	}
	if err := logger.Check(); err != nil {
		return fmt.Errorf("the lines differ, so nothing is measured:\n%w", err)
	}
	results := measure.NewResults("logger", plan.Rounds)
	var err error
	if results.Samples, err = measure.Measure(os.Stderr, plan, logger.Subjects()); err != nil {
		return err
	}
	return a.save(results, len(results.Samples))
}

// runWriters gives every sample of a case the same number of lines: what a
// queue loses depends on how many come.
func runWriters(a *arguments) error {
	rounds := a.Int("rounds", 9, "how often everything is measured; 7 or more for tables that count")
	ops := a.Int("ops", 1_000_000, "lines in one sample of raw writes; those to files have a quarter of it")
	dir := a.String("dir", "", "folder for the log files that are written and removed, some 64 MB at a time; default the one for temporary files")
	if err := a.parse(func() bool { return *rounds > 0 && *ops >= 1000 }); err != nil {
		return err
	}
	if a.short {
		*rounds, *ops = 1, 20_000
	}
	if err := writers.Check(min(100_000, *ops)); err != nil {
		return fmt.Errorf("a writer breaks lines, so nothing is measured:\n%w", err)
	}
	results := measure.NewResults("writers", *rounds)
	add := func(ops int, subjects []measure.Subject) error {
		samples, err := measure.Measure(os.Stderr, measure.Plan{Rounds: *rounds, Ops: ops}, subjects)
		results.Samples = append(results.Samples, samples...)
		return err
	}
	err := errors.Join(add(*ops, writers.RawSubjects()), add(*ops/4, append(writers.FileSubjects(*dir), writers.PublishedSubjects(*dir)...)))
	for _, l := range writers.Loads() {
		err = errors.Join(err, add(l.Ops(*ops), writers.FrontSubjects(l, *dir)))
	}
	if err != nil {
		return err
	}
	return a.save(results, len(results.Samples))
}

func runLatency(a *arguments) error {
	rounds := a.Int("rounds", 15, "how often everything is measured; 9 or more for tables that count")
	each := a.Duration("time", time.Second, "how long each writer gets lines, in each round; many short rounds, as the machine's own pauses are in most of the long ones")
	realtime := a.Bool("realtime", false, "come before all other threads of the machine (SCHED_FIFO; takes root on Linux)")
	if err := a.parse(func() bool { return *rounds > 0 && *each >= 100*time.Millisecond }); err != nil {
		return err
	}
	if a.short {
		*rounds, *each = 1, 300*time.Millisecond
	}
	scenarios, err := latency.Scenarios()
	if err != nil {
		return err
	}
	if *realtime {
		if err := measure.Realtime(); err != nil {
			return err
		}
	}
	results := measure.NewResults("latency", *rounds)
	if results.Samples, err = latency.Measure(os.Stderr, scenarios, *rounds, *each); err != nil {
		return err
	}
	return a.save(results, len(results.Samples))
}

// runDirect makes the experiments of the published direct-I/O logger.
func runDirect(a *arguments) error {
	var s direct.Settings
	a.StringVar(&s.Dir, "dir", "", "folder for the log files that are written and removed, up to 4 GB at a time; default the one for temporary files")
	a.DurationVar(&s.Time, "time", 30*time.Second, "how long each sample of the experiment with pools takes; the publication counted for 2m")
	only := a.String("only", "", "the only experiment to make")
	if err := a.parse(func() bool { return s.Time >= time.Second }); err != nil {
		return err
	}
	s.Short = a.short
	made := 0
	for _, e := range direct.Experiments() {
		if *only != "" && *only != e.Name {
			continue
		}
		made++
		results, err := e.Measure(os.Stderr, s)
		if err != nil {
			return err
		}
		if err := measure.Save(filepath.Join(a.out, direct.Kind+"-"+e.Name+".json"), results); err != nil {
			return err
		}
	}
	if made == 0 {
		return fmt.Errorf("there is no experiment %q", *only)
	}
	return nil
}

// runHeadline measures the gRPC server that logs 300 MB a second.
func runHeadline(a *arguments) error {
	s := direct.DefaultHeadline()
	a.StringVar(&s.Dir, "dir", "", "folder for the log files that are written and removed, up to 2 GB at a time; default the one for temporary files")
	a.IntVar(&s.Pairs, "pairs", s.Pairs, "runs with logging, as many without, and as many controls of each kind; 7 or more for tables that count")
	a.DurationVar(&s.Each, "each", s.Each, "how long each of these takes")
	a.DurationVar(&s.Long, "duration", s.Long, "how long the last run takes, with logging, its files read back and removed meanwhile")
	a.BoolVar(&s.Realtime, "realtime", false, "the server and those who send requests come before all other threads of the machine (SCHED_FIFO; takes root on Linux)")
	if err := a.parse(func() bool { return s.Pairs > 0 }); err != nil {
		return err
	}
	if a.short {
		s.Short()
	}
	results := direct.Headlines{Results: *measure.NewResults(direct.Kind, s.Pairs)}
	var err error
	if results.Runs, err = s.Run(os.Stderr); err != nil {
		return err
	}
	return measure.Save(filepath.Join(a.out, direct.Kind+"-headline.json"), results)
}

// runRelay keeps the other parts of the file with -only.
func runRelay(a *arguments) error {
	var s relay.Settings
	a.IntVar(&s.Rounds, "rounds", 0, "how often everything is measured; 0 takes each part's default")
	only := a.String("only", "", "parts to measure, of "+strings.Join(relay.Groups(), ",")+"; default all")
	if err := a.parse(func() bool { return s.Rounds >= 0 }); err != nil {
		return err
	}
	s.Short = a.short
	results := relay.NewResults()
	if *only != "" {
		s.Groups = strings.Split(*only, ",")
		for _, name := range s.Groups {
			if !slices.Contains(relay.Groups(), name) {
				return fmt.Errorf("there is no part %q", name)
			}
		}
		switch old, err := relay.Load(a.out); {
		case err == nil:
			results.Parts = old.Parts
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	if err := relay.Run(os.Stderr, results, s); err != nil {
		return err
	}
	return a.save(results, len(results.Parts))
}

// runAlloc measures where allocations come from, with several toolchains.
func runAlloc(a *arguments) error {
	rounds := a.Int("rounds", 9, "how often everything is measured; 7 or more leave room for noisy samples")
	each := a.Duration("time", 40*time.Millisecond, "how long one sample takes, about")
	goes := a.String("go", "go1.13.15,go1.17.13,go1.22.12,"+allocstudy.Today, "toolchains, oldest first; "+allocstudy.Today+" is the one in PATH")
	if err := a.parse(func() bool { return *rounds > 0 && *each > 0 }); err != nil {
		return err
	}
	if a.short {
		*rounds, *each, *goes = 1, 2*time.Millisecond, allocstudy.Today
	}
	dir, err := os.MkdirTemp("", "allocstudy-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	results := allocstudy.Results{Results: *measure.NewResults(allocstudy.Kind, *rounds)}
	if err := results.Run(os.Stderr, dir, strings.Split(*goes, ","), *each); err != nil {
		return err
	}
	return a.save(results, len(results.Samples))
}

// runIngest measures taking events in.
func runIngest(a *arguments) (err error) {
	var plan measure.Plan
	a.IntVar(&plan.Rounds, "rounds", 9, "how often each pipeline is measured; 7 or more for tables that count")
	a.DurationVar(&plan.Time, "time", 150*time.Millisecond, "how long one sample of a pipeline takes")
	var s ingest.Settings
	a.DurationVar(&s.Duration, "duration", 15*time.Second, "how long each server is under each load")
	a.IntVar(&s.Conns, "connections", 256, "connections of the load")
	a.BoolVar(&s.Fetch, "fetch", true, "fetch and build the rivals that are not in the cache, some minutes once")
	a.StringVar(&s.Dir, "dir", "", "folder for the journals, best on the disk that a collector would use; default the system's for temporary files")
	if err := a.parse(func() bool { return plan.Rounds > 0 && plan.Time > 0 && s.Duration > 0 && s.Conns > 0 }); err != nil {
		return err
	}
	benchmark := ingest.PlanBenchmark
	if a.short {
		plan = measure.Plan{Rounds: 1, Ops: 200}
		benchmark = plan
		s.Duration, s.Conns, s.Fetch = 500*time.Millisecond, 64, false
	}
	results := ingest.Results{Results: *measure.NewResults(ingest.Kind, plan.Rounds)}
	if results.Samples, err = measure.Measure(os.Stderr, plan, ingest.Subjects(s.Dir)); err != nil {
		return err
	}
	more, err := measure.Measure(os.Stderr, benchmark, ingest.BenchmarkSubjects())
	if err != nil {
		return err
	}
	results.Samples = append(results.Samples, more...)
	if results.Runs, results.LeftOut, err = ingest.Measure(os.Stderr, s); err != nil {
		return err
	}
	return a.save(results, len(results.Samples)+len(results.Runs))
}
