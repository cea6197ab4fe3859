package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/rollway/rollway/bench/allocstudy"
	"github.com/rollway/rollway/bench/internal/measure"
)

// runAlloc measures where allocations come from, with several toolchains.
func runAlloc(args []string) error {
	flags := flag.NewFlagSet("alloc", flag.ExitOnError)
	rounds := flags.Int("rounds", 9, "how often everything is measured; 7 or more leave room for noisy samples")
	each := flags.Duration("time", 40*time.Millisecond, "how long one sample takes, about")
	goes := flags.String("go", "go1.13.15,go1.17.13,go1.22.12,"+allocstudy.Today, "toolchains, oldest first; "+allocstudy.Today+" is the one in PATH")
	short := flags.Bool("short", false, "one brief round with the toolchain in PATH alone, to see that everything holds")
	out := flags.String("o", "", "file for the raw results")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *short {
		*rounds, *each, *goes = 1, 2*time.Millisecond, allocstudy.Today
	}
	if *out == "" || flags.NArg() > 0 || *rounds < 1 || *each <= 0 {
		return errors.New("want -o FILE, at least one round and a time, and no other arguments")
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
	if err := results.Save(*out); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%d counts and %d samples in %s\n", len(results.Counts), len(results.Samples), *out)
	return nil
}

// runAllocTables writes the study's tables into the document.
func runAllocTables(args []string) error {
	return document{
		command: "alloc-tables", kind: allocstudy.Kind,
		results: "../docs/results/allocstudy.json", doc: "../docs/BENCHMARKS.md",
		render: tablesOf(allocstudy.Load),
	}.write(args)
}
