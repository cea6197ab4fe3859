// Command bench measures Rollway against its rivals, and makes the tables of
// docs/BENCHMARKS.md, docs/RELIABILITY.md, docs/RELAY.md and docs/PUBLISHED.md
// from the results. It is run in the folder bench:
//
//	go run ./cmd/bench PROGRAM [-short] -o ../docs/results/PROGRAM.json
//	go run ./cmd/bench tables [-results ../docs/results] [-docs ../docs] [-check] [PROGRAM...]
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rollway/rollway/bench/internal/child"
	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/bench/internal/report"
)

// A program measures something, or makes a part of a document, or both.
type program struct {
	name     string
	run      func(*arguments) error // nil: it only makes tables
	document string                 // of the tables; "": none
	marks    string                 // around the tables; "": name
	results  string                 // file of the raw results; "": the folder
	report   func(results string) (report.Report, error)
}

// marked is the name between the marks of the tables.
func (p program) marked() string { return cmp.Or(p.marks, p.name) }

// An arguments is the command line of a program.
type arguments struct {
	*flag.FlagSet
	short bool
	out   string
	args  []string
}

// parse parses the flags, of which every program has -short and -o. valid says
// what is wrong with the others.
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
		if p.run == nil {
			continue
		}
		names = append(names, p.name)
		if len(os.Args) > 1 && os.Args[1] == p.name {
			end(p.name, p.run(&arguments{FlagSet: flag.NewFlagSet(p.name, flag.ExitOnError), args: os.Args[2:]}))
		}
	}
	if len(os.Args) > 1 && os.Args[1] == "tables" {
		end("tables", tables(os.Args[2:]))
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

// tables makes the tables of the programs named, or of all.
func tables(args []string) error {
	flags := flag.NewFlagSet("tables", flag.ExitOnError)
	results := flags.String("results", "../docs/results", "folder of the raw results")
	docs := flags.String("docs", "../docs", "folder of the documents")
	check := flags.Bool("check", false, "only make the tables, change nothing")
	if err := flags.Parse(args); err != nil {
		return err
	}
	made := 0
	for _, p := range programs() {
		if p.report == nil || flags.NArg() > 0 && !slices.Contains(flags.Args(), p.name) {
			continue
		}
		made++
		r, err := p.report(filepath.Join(*results, p.results))
		if err != nil {
			return fmt.Errorf("tables of %s: %w", p.name, err)
		}
		if *check {
			continue
		}
		if err := r.Write(filepath.Join(*docs, p.document), p.marked()); err != nil {
			return err
		}
	}
	if made == 0 || flags.NArg() > made {
		return fmt.Errorf("not all of %v have tables", flags.Args())
	}
	fmt.Printf("%d passed, 0 failed\n", made)
	return nil
}

// of makes the report of results of one kind in one file.
func of[T any](kind string, make func(*T) report.Report) func(string) (report.Report, error) {
	return func(path string) (report.Report, error) {
		results, err := measure.Load[T](path, kind)
		if err != nil {
			return report.Report{}, err
		}
		return report.Make(func() report.Report { return make(results) })
	}
}

// text is a report without pictures.
func text[T any](make func(*T) string) func(*T) report.Report {
	return func(results *T) report.Report { return report.Report{Text: make(results)} }
}
