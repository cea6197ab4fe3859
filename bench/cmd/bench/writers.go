package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/bench/writers"
)

// runWriters gives every sample of a case the same number of lines: what a
// queue loses depends on how many come.
func runWriters(args []string) error {
	flags := flag.NewFlagSet("writers", flag.ExitOnError)
	rounds := flags.Int("rounds", 9, "how often everything is measured; 7 or more for tables that count")
	ops := flags.Int("ops", 1_000_000, "lines in one sample of raw writes; those to files have a quarter of it")
	short := flags.Bool("short", false, "one brief round, to see that everything runs")
	dir := flags.String("dir", "", "folder for the log files that are written and removed, some 64 MB at a time; default the one for temporary files")
	out := flags.String("o", "", "file for the raw results")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *short {
		*rounds, *ops = 1, 20_000
	}
	if *out == "" || flags.NArg() > 0 || *rounds < 1 || *ops < 1000 {
		return errors.New("want -o FILE, at least one round and 1000 lines, and no other arguments")
	}
	log.SetOutput(io.Discard) // zerolog's diode prints a line for each collision
	if err := writers.Check(min(100_000, *ops)); err != nil {
		return fmt.Errorf("a writer breaks lines, so nothing is measured:\n%w", err)
	}
	results := measure.NewResults("writers", *rounds)
	type part struct {
		ops      int
		subjects []measure.Subject
	}
	parts := []part{
		{*ops, writers.RawSubjects()},
		{*ops / 4, append(writers.FileSubjects(*dir), writers.PublishedSubjects(*dir)...)},
	}
	for _, l := range writers.Loads() {
		parts = append(parts, part{l.Ops(*ops), writers.FrontSubjects(l, *dir)})
	}
	for _, part := range parts {
		samples, err := measure.Measure(os.Stderr, measure.Plan{Rounds: *rounds, Ops: part.ops}, part.subjects)
		if err != nil {
			return err
		}
		results.Samples = append(results.Samples, samples...)
	}
	if err := results.Save(*out); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%d samples in %s\n", len(results.Samples), *out)
	return nil
}
