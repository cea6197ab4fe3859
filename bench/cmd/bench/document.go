package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rollway/rollway/bench/internal/measure"
)

// A document says which raw results go into which document.
type document struct {
	command string // the one that writes it
	kind    string // of the tables: the name of their place
	results string // default file or folder of the raw results
	doc     string // default file of the document

	// render makes the tables, and files that belong beside the document, by
	// their path from there.
	render func(results string) (text string, files map[string]string, err error)
}

// write runs the command with its flags.
func (d document) write(args []string) error {
	flags := flag.NewFlagSet(d.command, flag.ExitOnError)
	from := flags.String("results", d.results, "where the raw results are")
	doc := flags.String("doc", d.doc, "document to write into")
	check := flags.Bool("check", false, "only make the tables, change nothing")
	if err := flags.Parse(args); err != nil {
		return err
	}
	text, files, err := d.render(*from)
	if err != nil || *check {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(filepath.Dir(*doc), name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	changed, err := measure.Replace(*doc, d.kind, text)
	if changed {
		fmt.Printf("%s: tables of %s written\n", *doc, d.kind)
	}
	return err
}

// tablesOf renders results that are in one file and have no other files.
func tablesOf[R interface{ Tables() (string, error) }](load func(path string) (R, error)) func(string) (string, map[string]string, error) {
	return func(path string) (string, map[string]string, error) {
		results, err := load(path)
		if err != nil {
			return "", nil, err
		}
		text, err := results.Tables()
		return text, nil, err
	}
}
