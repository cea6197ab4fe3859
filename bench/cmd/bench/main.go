// Command bench measures Rollway against its rivals, and makes the tables of
// docs/BENCHMARKS.md, docs/RELIABILITY.md, docs/RELAY.md and docs/PUBLISHED.md
// from the results. It is run in the folder bench:
//
//	go run ./cmd/bench PROGRAM [-short] -o ../docs/results/PROGRAM.json
//	go run ./cmd/bench tables [-results ../docs/results] [-docs ../docs] [-check] [SECTION...]
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strings"

	"github.com/rollway/rollway/bench/internal/child"
	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/bench/tables"
)

// A program measures something.
type program struct {
	name string
	run  func(*arguments) error
}

// An arguments is the command line of a program.
type arguments struct {
	*flag.FlagSet
	short bool
	out   string
	args  []string
}

// parse parses the flags; every program has -short and -o. valid checks the
// others.
func (a *arguments) parse(valid func() bool) error {
	a.BoolVar(&a.short, "short", false, "measure everything briefly, to see that it runs")
	a.StringVar(&a.out, "o", "", "file, or folder of several files, for the raw results")
	if err := a.Parse(a.args); err != nil {
		return err
	}
	if a.out == "" || a.NArg() > 0 || valid != nil && !valid() {
		return errors.New("want -o, valid numbers, and no other arguments; -h lists the flags")
	}
	return nil
}

// save writes results and tells how many there are.
func (a *arguments) save(results any, n int) error {
	if err := measure.Save(a.out, results); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%d results in %s\n", n, a.out)
	return nil
}

func main() {
	child.Main()              // does not return in a child
	log.SetOutput(io.Discard) // zerolog's diode prints a line for each collision
	var names []string
	for _, p := range programs() {
		names = append(names, p.name)
		if len(os.Args) > 1 && os.Args[1] == p.name {
			end(p.name, p.run(&arguments{FlagSet: flag.NewFlagSet(p.name, flag.ExitOnError), args: os.Args[2:]}))
		}
	}
	if len(os.Args) > 1 && os.Args[1] == "tables" {
		end("tables", makeTables(os.Args[2:]))
	}
	fmt.Fprintf(os.Stderr, "usage: go run ./cmd/bench %s|tables [flags]\n", strings.Join(names, "|"))
	os.Exit(2)
}

func end(name string, err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench %s: %v\n", name, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// makeTables makes the sections named, or all.
func makeTables(args []string) error {
	flags := flag.NewFlagSet("tables", flag.ExitOnError)
	results := flags.String("results", "../docs/results", "folder of the raw results")
	docs := flags.String("docs", "../docs", "folder of the documents")
	check := flags.Bool("check", false, "only make the tables, change nothing")
	if err := flags.Parse(args); err != nil {
		return err
	}
	made := 0
	for _, s := range tables.Sections() {
		if flags.NArg() > 0 && !slices.Contains(flags.Args(), s.Name) {
			continue
		}
		made++
		r, err := s.Make(*results)
		if err == nil && !*check {
			err = s.Write(r, *docs)
		}
		if err != nil {
			return err
		}
	}
	if flags.NArg() > made {
		return fmt.Errorf("not all of %v have tables", flags.Args())
	}
	fmt.Printf("%d passed, 0 failed\n", made)
	return nil
}
