package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/rollway/rollway/bench/direct"
	"github.com/rollway/rollway/bench/internal/measure"
)

// runDirect repeats the experiments of the published direct-I/O logger.
func runDirect(args []string) error {
	flags := flag.NewFlagSet("direct", flag.ExitOnError)
	var s direct.Settings
	flags.StringVar(&s.Dir, "dir", "", "folder for the log files that are written and removed, up to 4 GB at a time; default the one for temporary files")
	flags.BoolVar(&s.Short, "short", false, "each experiment once and briefly, to see that everything runs")
	flags.DurationVar(&s.Time, "time", direct.DefaultTime, "how long each sample of the experiment with pools takes; the publication counted for 2m")
	profile := flags.String("cpuprofile", "", "file for a CPU profile of all samples, labelled with design and mode")
	only := flags.String("only", strings.Join(direct.Cases(), ","), "experiments")
	out := flags.String("o", "", "folder for the raw results")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *out == "" || flags.NArg() > 0 || s.Time < time.Second {
		return errors.New("want -o FOLDER, -time of a second or more, and no other arguments")
	}
	log.SetOutput(io.Discard) // a rival may print
	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	for _, name := range strings.Split(*only, ",") {
		if !slices.Contains(direct.Cases(), name) {
			return fmt.Errorf("there is no experiment %q, but %s", name, strings.Join(direct.Cases(), ", "))
		}
		results := measure.NewResults(direct.Kind, s.Rounds(name))
		samples, err := s.Measure(os.Stderr, name)
		if err != nil {
			return err
		}
		results.Samples = samples
		if err := results.Save(filepath.Join(*out, direct.File(name))); err != nil {
			return err
		}
	}
	return nil
}

// runDirectHeadline measures the gRPC server that logs 300 MB a second.
func runDirectHeadline(args []string) error {
	flags := flag.NewFlagSet("direct-headline", flag.ExitOnError)
	s := direct.DefaultHeadline()
	flags.StringVar(&s.Dir, "dir", "", "folder for the log files that are written and removed, up to 2 GB at a time; default the one for temporary files")
	flags.IntVar(&s.Pairs, "pairs", s.Pairs, "runs with logging, as many without, and as many without beside a busy disk; 7 or more for tables that count")
	flags.DurationVar(&s.Each, "each", s.Each, "how long each of these takes")
	flags.DurationVar(&s.Long, "duration", s.Long, "how long the last run takes, with logging, its files read back and removed meanwhile")
	flags.IntVar(&s.Buffer, "buffer", s.Buffer, "bytes of one set of buffers")
	flags.IntVar(&s.Shards, "shards", s.Shards, "shards")
	flags.IntVar(&s.Sets, "sets", s.Sets, "sets of buffers; a slab is a part of one")
	flags.BoolVar(&s.Realtime, "realtime", false, "the server and those who send requests come before all other threads of the machine (SCHED_FIFO; takes root on Linux)")
	flags.Int64Var(&s.Segment, "segment", s.Segment, "bytes at which a log file is rotated")
	short := flags.Bool("short", false, "briefly, to see that everything runs")
	out := flags.String("o", "", "folder for the raw results")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *short {
		s.Short()
	}
	if *out == "" || flags.NArg() > 0 || s.Pairs < 1 {
		return errors.New("want -o FOLDER, at least one pair, and no other arguments")
	}
	results := direct.Headlines{Results: *measure.NewResults(direct.Kind, s.Pairs)}
	runs, err := s.Run(os.Stderr)
	if err != nil {
		return err
	}
	results.Runs = runs
	if err := results.Save(filepath.Join(*out, direct.FileHeadline)); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(*out, direct.FilePlot), []byte(direct.Plot(runs[len(runs)-1])), 0o644)
}

// runDirectTables writes the tables of these experiments into the document.
func runDirectTables(args []string) error {
	return document{
		command: "direct-tables", kind: direct.Kind,
		results: "../docs/results", doc: "../docs/BENCHMARKS.md",
		render: func(dir string) (string, map[string]string, error) {
			text, err := direct.Tables(dir)
			return text, nil, err
		},
	}.write(args)
}
