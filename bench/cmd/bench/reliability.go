package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/bench/reliability"
)

// runReliability puts the writers under faults. It fails if one of our own
// does not do what it promises, after it has saved what happened.
func runReliability(args []string) error {
	flags := flag.NewFlagSet(reliability.Kind, flag.ExitOnError)
	var s reliability.Settings
	flags.IntVar(&s.Tries, "tries", 4, "tries of each fault that does not kill, with each writer")
	flags.IntVar(&s.Kills, "kills", 200, "SIGKILLs of each writer at random, in a copy and in a write, each")
	flags.IntVar(&s.Others, "other-kills", 50, "tries of each other way to kill")
	flags.DurationVar(&s.Limit, "limit", 10*time.Second, "after which a call has hung, and a writer that brings no line to the file is dead")
	flags.IntVar(&s.Jobs, "jobs", 14, "processes at the same time")
	flags.Uint64Var(&s.Seed, "seed", 1, "of the first try of each fault")
	flags.StringVar(&s.Dir, "dir", "", "folder for log files; default the one for temporary files")
	fault := flags.String("fault", "", "only this fault, by its name in the results")
	writer := flags.String("writer", "", "only this writer")
	short := flags.Bool("short", false, "one try of each fault, to see that everything runs")
	out := flags.String("o", "", "file for the raw results")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *short {
		s.Tries, s.Kills, s.Others, s.Limit, s.Jobs = 1, 2, 1, 3*time.Second, 16
	}
	if *out == "" || flags.NArg() > 0 || s.Tries < 0 || s.Kills < 0 || s.Others < 0 || s.Limit <= 0 {
		return errors.New("want -o FILE, no negative numbers, and no other arguments")
	}
	results := reliability.Results{Results: *measure.NewResults(reliability.Kind, 1), Missing: map[string]string{}}
	results.Disk, results.Slabs = reliability.FileSystems(s.Dir)
	for _, f := range reliability.Faults() {
		if *fault != "" && f.Name != *fault {
			continue
		}
		if missing := f.Missing(); missing != "" {
			if os.Getenv("REQUIRE") == "all" {
				return fmt.Errorf("REQUIRE=all, but %q needs %s", f.Name, missing)
			}
			fmt.Fprintf(os.Stderr, "NOT TRIED: %s needs %s\n", f.Name, missing)
			results.Missing[f.Name] = missing
			continue
		}
		s.Faults = append(s.Faults, f)
	}
	for _, w := range reliability.Writers() {
		if *writer == "" || w.Name == *writer {
			s.Writers = append(s.Writers, w)
		}
	}
	if len(s.Faults) == 0 || len(s.Writers) == 0 {
		return errors.New("there is no such fault or writer, or this machine cannot try it")
	}
	tries, err := reliability.Run(os.Stderr, s)
	if err != nil {
		return err
	}
	results.Tries = tries
	if err := results.Save(*out); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%d tries in %s\n", len(tries), *out)
	if errs := results.Unexpected(); len(errs) > 0 {
		return fmt.Errorf("%d tries did not end as they must; run one again with -fault, -writer, -seed and -tries, -kills or -other-kills 1:\n%w", len(errs), errors.Join(errs...))
	}
	return nil
}

// runReliabilityTables writes the tables into the document.
func runReliabilityTables(args []string) error {
	return document{
		command: "reliability-tables", kind: reliability.Kind,
		results: "../docs/results/reliability.json", doc: "../docs/RELIABILITY.md",
		render: tablesOf(reliability.Load),
	}.write(args)
}
