// Command dev holds the steps of building Rollway that take more than a line of
// shell. Run it at the root of a checkout:
//
//	go run ./scripts/dev test [-nightly=PART] [go test flags]
//	go run ./scripts/dev race
//	go run ./scripts/dev nightly [-again] [PART ...]
//	go run ./scripts/dev redteam [-short] [-o FILE]
//	go run ./scripts/dev fuzz [-time 10s] [-total 5m]
//	go run ./scripts/dev readme
//
// It builds every module with GOWORK=off, as users do.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
)

func main() {
	commands := map[string]func(args []string) error{"test": test, "race": race, "nightly": nightly, "redteam": redteam, "fuzz": fuzz, "readme": readme}
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: go run ./scripts/dev test|race|nightly|redteam|fuzz|readme [flags]")
		os.Exit(2)
	}
	err := os.Setenv("GOWORK", "off")
	if err == nil {
		err = commands[os.Args[1]](os.Args[2:])
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "dev %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

var used = regexp.MustCompile(`(?m)^\t(\..*)$`)

// modules returns the folders of the repository's modules, as go.work lists them from
// its end: the collector, whose tests take longest, is the first.
func modules() (dirs []string, err error) {
	text, err := os.ReadFile("go.work")
	if err != nil {
		return nil, fmt.Errorf("%w (run this at the root of a checkout)", err)
	}
	for _, m := range used.FindAllSubmatch(text, -1) {
		dirs = append(dirs, string(m[1]))
	}
	slices.Reverse(dirs)
	return dirs, nil
}

// output runs a program in dir and returns what it prints to standard output.
func output(dir, program string, args ...string) (string, error) {
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", program, args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}

// each calls do with 0 to n-1, at most limit at a time.
func each(n, limit int, do func(i int)) {
	var running sync.WaitGroup
	slots := make(chan struct{}, limit)
	for i := range n {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			do(i)
		})
	}
	running.Wait()
}

// requireAll reports whether a test that cannot run here must fail.
func requireAll() bool { return os.Getenv("REQUIRE") == "all" }
