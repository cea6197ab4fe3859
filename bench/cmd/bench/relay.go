package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/rollway/rollway/bench/relay"
)

// runRelay measures relays. With -only it keeps the other parts of the file.
func runRelay(args []string) error {
	flags := flag.NewFlagSet(relay.Kind, flag.ExitOnError)
	var s relay.Settings
	flags.IntVar(&s.Rounds, "rounds", 0, "how often everything is measured; 0 takes each part's default")
	only := flags.String("only", "", "parts to measure, of "+strings.Join(relay.Groups(), ",")+"; default all")
	relays := flags.String("relays", "", "names of the only relays to measure, separated by semicolons, to look into one; default all")
	flags.BoolVar(&s.Short, "short", false, "everything once, with little, to see that it runs")
	out := flags.String("o", "", "file for the raw results")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *out == "" || flags.NArg() > 0 || s.Rounds < 0 {
		return errors.New("want -o FILE, no negative numbers, and no other arguments")
	}
	if *relays != "" {
		s.Relays = strings.Split(*relays, ";")
	}
	results := relay.NewResults()
	if *only != "" {
		s.Groups = strings.Split(*only, ",")
		for _, name := range s.Groups {
			if !slices.Contains(relay.Groups(), name) {
				return fmt.Errorf("there is no part %q", name)
			}
		}
		switch old, err := relay.Load(*out); {
		case err == nil:
			results.Parts = old.Parts
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	if err := relay.Run(os.Stderr, results, s); err != nil {
		return err
	}
	return results.Save(*out)
}

// runRelayTables writes the relays' tables into the document and the pictures
// beside it.
func runRelayTables(args []string) error {
	return document{
		command: "relay-tables", kind: relay.Kind,
		results: "../docs/results/relay.json", doc: "../docs/RELAY.md",
		render: func(path string) (string, map[string]string, error) {
			results, err := relay.Load(path)
			if err != nil {
				return "", nil, err
			}
			text, err := results.Tables()
			if err != nil {
				return "", nil, err
			}
			pictures, err := results.Pictures()
			return text, pictures, err
		},
	}.write(args)
}
