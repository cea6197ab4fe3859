package main

import "github.com/rollway/rollway/bench/published"

// runPublishedTable writes the table of what is published and what is so, from the
// raw results of all programs.
func runPublishedTable(args []string) error {
	return document{
		command: "published-table", kind: published.Kind,
		results: "../docs/results", doc: "../docs/PUBLISHED.md",
		render: func(dir string) (string, map[string]string, error) {
			text, err := published.Table(dir)
			return text, nil, err
		},
	}.write(args)
}
