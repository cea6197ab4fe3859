package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/bench/stuck"
)

// runStuck puts loggers in front of stuck destinations. It fails if one of our
// own does not do what it promises, after it has saved what happened.
func runStuck(args []string) error {
	flags := flag.NewFlagSet(stuck.Kind, flag.ExitOnError)
	s := stuck.Settings{}
	flags.DurationVar(&s.Limit, "limit", 10*time.Second, "after which a process has hung")
	writer := flags.String("writer", "", "only this writer")
	short := flags.Bool("short", false, "only Info and Fatal, to see that everything runs")
	out := flags.String("o", "", "file for the raw results")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *out == "" || flags.NArg() > 0 || s.Limit <= 0 {
		return errors.New("want -o FILE, a limit above 0, and no other arguments")
	}
	dir, err := os.MkdirTemp("", "rollway-stuck-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s.Dir = dir
	end, err := s.StopCollector(dir)
	if err != nil {
		return err
	}
	defer end()
	results := stuck.Results{Results: *measure.NewResults(stuck.Kind, 1)}
	var broken []error
	for _, situation := range stuck.Situations {
		for _, w := range stuck.Writers() {
			for _, act := range stuck.Acts {
				if !w.Meets(situation.Name, act) || *writer != "" && w.Name != *writer || *short && act != stuck.Info && act != stuck.Fatal {
					continue
				}
				t, err := s.Try(w, situation.Name, act)
				if err != nil {
					return fmt.Errorf("%s, %s, %s: %w", w.Name, situation.Name, act, err)
				}
				fmt.Fprintf(os.Stderr, "%s, %s, %s: longest call %v, %d in a call, took %v\n", w.Name, situation.Name, act, t.Longest, t.InCall, t.Took)
				results.Tries = append(results.Tries, t)
				if err := t.Unexpected(w, 500*time.Millisecond); err != nil {
					broken = append(broken, err)
				}
			}
		}
	}
	return errors.Join(append(broken, results.Save(*out))...)
}

// runStuckTables writes the tables into the document.
func runStuckTables(args []string) error {
	return document{
		command: "stuck-tables", kind: stuck.Kind,
		results: "../docs/results/stuck.json", doc: "../docs/RELIABILITY.md",
		render: tablesOf(stuck.Load),
	}.write(args)
}
