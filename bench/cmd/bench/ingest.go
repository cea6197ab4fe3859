package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/rollway/rollway/bench/ingest"
	"github.com/rollway/rollway/bench/internal/measure"
)

// runIngest measures taking events in.
func runIngest(args []string) error {
	flags := flag.NewFlagSet(ingest.Kind, flag.ExitOnError)
	plan := measure.Plan{}
	flags.IntVar(&plan.Rounds, "rounds", 9, "how often each pipeline is measured; 7 or more for tables that count")
	flags.DurationVar(&plan.Time, "time", 300*time.Millisecond, "how long one sample of a pipeline takes")
	s := ingest.Settings{}
	flags.DurationVar(&s.Duration, "duration", time.Minute, "how long each server is under each load")
	flags.IntVar(&s.Conns, "connections", 256, "connections of the load")
	flags.BoolVar(&s.Fetch, "fetch", true, "fetch and build the rivals that are not in the cache, some minutes once")
	only := flags.String("only", "", "the only parts to measure, separated by commas, of requests, servers, rivals and saturation; the others stay as -o has them")
	servers := flags.String("servers", "", "the only ones to put under load, separated by semicolons, to look into one; default all")
	flags.StringVar(&s.Dir, "dir", "", "folder for the journals, best on the disk that a collector would use; default the system's for temporary files")
	short := flags.Bool("short", false, "everything once, with little, to see that it runs")
	out := flags.String("o", "", "file for the raw results")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *short {
		plan = measure.Plan{Rounds: 1, Ops: 200}
		s.Duration, s.Conns, s.Fetch = 500*time.Millisecond, 64, false
	}
	if *out == "" || flags.NArg() > 0 || plan.Rounds < 1 || plan.Time <= 0 && plan.Ops <= 0 || s.Duration <= 0 || s.Conns < 1 {
		return errors.New("want -o FILE, at least one round, one connection and a time, and no other arguments")
	}
	if *servers != "" {
		s.Servers = strings.Split(*servers, ";")
	}
	parts, err := ingest.ParseParts(*only)
	if err != nil {
		return err
	}
	results := ingest.Results{Results: *measure.NewResults(ingest.Kind, plan.Rounds)}
	if *only != "" {
		before, err := ingest.Load(*out)
		if err != nil {
			return err
		}
		results.Keep(before, parts)
	}
	fmt.Fprintf(os.Stderr, "this takes about %v\n", ingest.Takes(s, plan, parts).Round(time.Second))
	if err := measureIngest(&results, plan, s, parts); err != nil {
		return err
	}
	return results.Save(*out)
}

// measureIngest measures the parts into results.
func measureIngest(results *ingest.Results, plan measure.Plan, s ingest.Settings, parts map[ingest.Part]bool) (err error) {
	if parts[ingest.PartRequests] {
		if results.Samples, err = measure.Measure(os.Stderr, plan, ingest.Subjects(s.Dir)); err != nil {
			return err
		}
		if plan.Ops == 0 { // not -short
			plan = ingest.PlanBenchmark
		}
		samples, err := measure.Measure(os.Stderr, plan, ingest.BenchmarkSubjects())
		if err != nil {
			return err
		}
		results.Samples = append(results.Samples, samples...)
	}
	if parts[ingest.PartServers] {
		if results.Runs, err = ingest.MeasureLoad(os.Stderr, s); err != nil {
			return err
		}
	}
	if parts[ingest.PartRivals] {
		s := s
		s.Duration /= ingest.RivalShare
		if results.Rivals, results.LeftOut, err = ingest.MeasureRivals(os.Stderr, s); err != nil {
			return err
		}
	}
	if parts[ingest.PartSaturation] {
		s.Duration /= ingest.SaturationShare
		results.Saturated, err = ingest.MeasureSaturation(os.Stderr, s)
	}
	return err
}

// runIngestTables writes the tables and the picture of runIngest's results into
// the document and beside it.
func runIngestTables(args []string) error {
	return document{
		command: "ingest-tables", kind: ingest.Kind,
		results: "../docs/results/ingest.json", doc: "../docs/BENCHMARKS.md",
		render: func(path string) (string, map[string]string, error) {
			results, err := ingest.Load(path)
			if err != nil {
				return "", nil, err
			}
			text, err := results.Tables()
			if err != nil {
				return "", nil, err
			}
			return text, map[string]string{"results/" + ingest.FilePlot: ingest.Plot(results)}, nil
		},
	}.write(args)
}
