package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/rollway/rollway/bench/chaos"
	"github.com/rollway/rollway/bench/internal/measure"
)

// runChaos puts the collector under faults. It fails if something was not as it
// must be, after it has saved what happened.
func runChaos(args []string) error {
	flags := flag.NewFlagSet(chaos.Kind, flag.ExitOnError)
	var s chaos.Settings
	flags.BoolVar(&s.Short, "short", false, "a brief round of each fault, to see that everything runs")
	flags.StringVar(&s.Only, "fault", "", "only this fault, by its name in the results")
	flags.StringVar(&s.Dir, "dir", "", "folder for data; default the one for temporary files")
	flags.Uint64Var(&s.Seed, "seed", 1, "of the moments of kills")
	out := flags.String("o", "", "file for the raw results")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *out == "" || flags.NArg() > 0 {
		return errors.New("want -o FILE and no other arguments")
	}
	results := chaos.Results{Results: *measure.NewResults(chaos.Kind, 1), Missing: map[string]string{}}
	results.Command = strings.Join(append([]string{"bench", "ingest-chaos"}, args...), " ")
	for _, f := range chaos.Faults {
		missing := f.Missing()
		if missing == "" {
			continue
		}
		if os.Getenv("REQUIRE") == "all" {
			return fmt.Errorf("REQUIRE=all, but %q needs %s", f.Name, missing)
		}
		fmt.Fprintf(os.Stderr, "NOT TRIED: %s needs %s\n", f.Name, missing)
		results.Missing[f.Name] = missing
	}
	var err error
	if results.Tries, err = chaos.Run(os.Stderr, s); err != nil {
		return err
	}
	if err := results.Save(*out); err != nil {
		return err
	}
	if errs := results.Unexpected(); len(errs) > 0 {
		return fmt.Errorf("under %d faults something was not as it must be:\n%w", len(errs), errors.Join(errs...))
	}
	return nil
}

// runChaosTables writes the table into the document.
func runChaosTables(args []string) error {
	return document{
		command: "ingest-chaos-tables", kind: chaos.Kind,
		results: "../docs/results/chaos.json", doc: "../docs/RELIABILITY.md",
		render: tablesOf(chaos.Load),
	}.write(args)
}
