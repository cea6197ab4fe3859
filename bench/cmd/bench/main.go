// Command bench measures Rollway against its rivals and makes the tables of
// docs/BENCHMARKS.md, docs/RELIABILITY.md, docs/RELAY.md and docs/PUBLISHED.md. It is run in the
// folder bench:
//
//	go run ./cmd/bench logger  [-rounds 9] [-time 150ms] [-short] -o ../docs/results/logger.json
//	go run ./cmd/bench writers [-rounds 9] [-ops 1000000] [-dir DIR] [-short] -o ../docs/results/writers.json
//	go run ./cmd/bench latency [-rounds 15] [-time 1s] [-short] -o ../docs/results/latency.json
//	go run ./cmd/bench tables  [-results ../docs/results] [-doc ../docs/BENCHMARKS.md] [-only logger] [-check]
//	go run ./cmd/bench alloc        [-rounds 9] [-time 40ms] [-go go1.17.13,local] [-short] -o ../docs/results/allocstudy.json
//	go run ./cmd/bench alloc-tables [-results ../docs/results/allocstudy.json] [-doc ../docs/BENCHMARKS.md] [-check]
//	go run ./cmd/bench direct        [-only loss,call] [-dir DIR] [-short] -o ../docs/results
//	go run ./cmd/bench direct-headline [-pairs 7] [-each 5s] [-duration 1m] [-dir DIR] [-short] -o ../docs/results
//	go run ./cmd/bench direct-tables [-results ../docs/results] [-doc ../docs/BENCHMARKS.md] [-check]
//	go run ./cmd/bench reliability        [-tries 5] [-kills 200] [-other-kills 50] [-fault NAME] [-writer NAME] [-seed 1] [-jobs 4] [-short] -o ../docs/results/reliability.json
//	go run ./cmd/bench stuck              [-writer NAME] [-limit 10s] [-short] -o ../docs/results/stuck.json
//	go run ./cmd/bench stuck-tables       [-results ../docs/results/stuck.json] [-doc ../docs/RELIABILITY.md] [-check]
//	go run ./cmd/bench reliability-tables [-results ../docs/results/reliability.json] [-doc ../docs/RELIABILITY.md] [-check]
//	go run ./cmd/bench relay        [-rounds 0] [-only raw,idle] [-relays NAMES] [-short] -o ../docs/results/relay.json
//	go run ./cmd/bench relay-tables [-results ../docs/results/relay.json] [-doc ../docs/RELAY.md] [-check]
//	go run ./cmd/bench ingest        [-rounds 9] [-time 300ms] [-duration 1m] [-connections 256] [-dir DIR] [-short] -o ../docs/results/ingest.json
//	go run ./cmd/bench ingest-tables [-results ../docs/results/ingest.json] [-doc ../docs/BENCHMARKS.md] [-check]
//	go run ./cmd/bench ingest-chaos        [-fault NAME] [-dir DIR] [-seed 1] [-short] -o ../docs/results/chaos.json
//	go run ./cmd/bench ingest-chaos-tables [-results ../docs/results/chaos.json] [-doc ../docs/RELIABILITY.md] [-check]
//	go run ./cmd/bench published-table     [-results ../docs/results] [-doc ../docs/PUBLISHED.md] [-check]
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/rollway/rollway/bench/direct"
	"github.com/rollway/rollway/bench/ingest"
	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/bench/logger"
	"github.com/rollway/rollway/bench/relay"
	"github.com/rollway/rollway/bench/reliability"
	"github.com/rollway/rollway/bench/stuck"
)

func main() {
	reliability.Main() // does not return in a child of `bench reliability`
	stuck.Main()       // nor in one of `bench stuck`
	direct.Main()      // nor this in one of `bench direct-headline`
	relay.Main()       // nor in one of `bench relay`
	ingest.Main()      // nor in one of `bench ingest`
	commands := map[string]func(args []string) error{
		"logger": runLogger, "writers": runWriters, "latency": runLatency, "tables": runTables,
		"alloc": runAlloc, "alloc-tables": runAllocTables,
		"direct": runDirect, "direct-headline": runDirectHeadline, "direct-tables": runDirectTables,
		"stuck": runStuck, "stuck-tables": runStuckTables,
		"reliability": runReliability, "reliability-tables": runReliabilityTables,
		"relay": runRelay, "relay-tables": runRelayTables,
		"ingest": runIngest, "ingest-tables": runIngestTables,
		"published-table": runPublishedTable,
		"ingest-chaos":    runChaos, "ingest-chaos-tables": runChaosTables,
	}
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: go run ./cmd/bench logger|writers|latency|tables|alloc|alloc-tables|direct|direct-headline|direct-tables|reliability|reliability-tables|stuck|stuck-tables|relay|relay-tables|ingest|ingest-tables|ingest-chaos|ingest-chaos-tables|published-table [flags]")
		os.Exit(2)
	}
	if err := commands[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "bench %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

// measureFlags parses the flags of logger.
func measureFlags(name string, args []string) (plan measure.Plan, out string, err error) {
	flags := flag.NewFlagSet(name, flag.ExitOnError)
	flags.IntVar(&plan.Rounds, "rounds", 9, "how often everything is measured; 7 or more for tables that count")
	flags.DurationVar(&plan.Time, "time", 150*time.Millisecond, "how long one sample takes")
	flags.IntVar(&plan.Ops, "ops", 0, "operations in one sample; 0 takes as many as fill -time")
	short := flags.Bool("short", false, "one brief round, to see that everything runs")
	flags.StringVar(&out, "o", "", "file for the raw results")
	if err := flags.Parse(args); err != nil {
		return plan, "", err
	}
	if *short {
		plan = measure.Plan{Rounds: 1, Ops: 20_000}
	}
	if out == "" || flags.NArg() > 0 || plan.Rounds < 1 || plan.Time <= 0 && plan.Ops <= 0 {
		return plan, "", errors.New("want -o FILE, at least one round and a time, and no other arguments")
	}
	return plan, out, nil
}

func runLogger(args []string) error {
	plan, out, err := measureFlags("logger", args)
	if err != nil {
		return err
	}
	if err := logger.Check(); err != nil {
		return fmt.Errorf("the lines differ, so nothing is measured:\n%w", err)
	}
	return measureAndSave("logger", plan, out, logger.Subjects())
}

func measureAndSave(kind string, plan measure.Plan, out string, subjects []measure.Subject) error {
	results := measure.NewResults(kind, plan.Rounds)
	samples, err := measure.Measure(os.Stderr, plan, subjects)
	if err != nil {
		return err
	}
	results.Samples = samples
	if err := results.Save(out); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%d samples in %s\n", len(samples), out)
	return nil
}
