// Command dev holds the steps of building Rollway that want more than a line
// of shell. It is run at the root of a checkout:
//
//	go run ./scripts/dev test [-nightly=PART] [go test flags]
//	go run ./scripts/dev race
//	go run ./scripts/dev nightly [-again] [PART ...]
//	go run ./scripts/dev fuzz [-time 10s] [-total 5m]
//	go run ./scripts/dev readme
//
// Every module is handled with GOWORK=off, that is as its users build it.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
)

func main() {
	commands := map[string]func(args []string) error{"test": test, "race": race, "nightly": nightly, "fuzz": fuzz, "readme": readme}
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: go run ./scripts/dev test|race|nightly|fuzz|readme [flags]")
		os.Exit(2)
	}
	if err := os.Setenv("GOWORK", "off"); err != nil {
		fail(err)
	}
	if err := commands[os.Args[1]](os.Args[2:]); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintf(os.Stderr, "dev %s: %v\n", os.Args[1], err)
	os.Exit(1)
}

// modules returns the folders of the repository's modules, the root first, as
// go.work lists them.
func modules() ([]string, error) {
	out, err := exec.Command("go", "work", "edit", "-json", "go.work").Output()
	if err != nil {
		return nil, fmt.Errorf("read go.work (run this at the root of a checkout): %w", withStderr(err))
	}
	var work struct {
		Use []struct{ DiskPath string }
	}
	if err := json.Unmarshal(out, &work); err != nil {
		return nil, fmt.Errorf("read go.work: %w", err)
	}
	var dirs []string
	for _, use := range work.Use {
		dirs = append(dirs, use.DiskPath)
	}
	return dirs, nil
}

// withStderr adds to the error of a finished command what it said.
func withStderr(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	return err
}

// requireAll reports whether a part that cannot run here must fail.
func requireAll() bool { return os.Getenv("REQUIRE") == "all" }
