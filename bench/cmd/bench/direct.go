package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rollway/rollway/bench/direct"
	"github.com/rollway/rollway/bench/internal/measure"
)

// runDirect repeats the experiments of the published direct-I/O logger.
func runDirect(args []string) error {
	flags := flag.NewFlagSet("direct", flag.ExitOnError)
	var s direct.Settings
	flags.StringVar(&s.Dir, "dir", "", "folder for the log files that are written and removed, up to 2 GB at a time; default the one for temporary files")
	flags.BoolVar(&s.Short, "short", false, "each experiment once and briefly, to see that everything runs")
	only := flags.String("only", strings.Join(direct.Cases(), ","), "experiments")
	out := flags.String("o", "", "folder for the raw results")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *out == "" || flags.NArg() > 0 {
		return errors.New("want -o FOLDER, and no other arguments")
	}
	log.SetOutput(io.Discard) // a rival may print
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

// runDirectTables writes the tables of these experiments into the document.
func runDirectTables(args []string) error {
	flags := flag.NewFlagSet("direct-tables", flag.ExitOnError)
	dir := flags.String("results", "../docs/results", "folder of the raw results")
	doc := flags.String("doc", "../docs/BENCHMARKS.md", "document to write into")
	check := flags.Bool("check", false, "only make the tables, change nothing")
	if err := flags.Parse(args); err != nil {
		return err
	}
	text, err := direct.Tables(*dir)
	if err != nil || *check {
		return err
	}
	changed, err := measure.Replace(*doc, direct.Kind, text)
	if changed {
		fmt.Printf("%s: tables of %s written\n", *doc, direct.Kind)
	}
	return err
}
