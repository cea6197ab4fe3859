package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// raceFlags are those of the run under the race detector. The tag overwrites and
// checks memory that is used again (collector/pool).
var raceFlags = []string{"-race", "-tags=rollway_poison"}

// noVet skips go vet, which scripts/lint runs with all its checks.
const noVet = "-vet=off"

// raceEnv shortens the second for which each program waits for reports of races
// before it ends.
const raceEnv = "GORACE=atexit_sleep_ms=50"

// race runs every test under the race detector, and then without it what that run left
// out. One report covers both.
func race(args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("race takes no flags, got %q", args)
	}
	dirs, err := modules()
	if err != nil {
		return err
	}
	r := newReport(os.Stdout)
	rest, err := raceIn(r, dirs)
	if err != nil {
		return err
	}
	clear(r.ended)
	fmt.Printf("\nwithout the race detector:\n")
	if err := runTests(r, rest); err != nil {
		return err
	}
	for id := range r.norace {
		if !r.ended[id] {
			r.fail("%s is for a run without the race detector, and was not in it", id)
		}
	}
	return r.finish(requireAll())
}

// raceIn runs the tests of the modules in dirs under the race detector and returns the
// runs without it that complete the set.
func raceIn(r *report, dirs []string) (rest []testRun, err error) {
	var runs []testRun
	for _, dir := range dirs {
		runs = append(runs, testRun{dir, append(slices.Clone(raceFlags), noVet), "./...", []string{raceEnv}})
	}
	if err := runTests(r, runs); err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		runs, err := withoutRace(dir, r.norace)
		if err != nil {
			return nil, err
		}
		rest = append(rest, runs...)
	}
	return rest, nil
}

// pkg is a package as go list describes it.
type pkg struct {
	Dir, ImportPath           string
	GoFiles, CgoFiles, SFiles []string
	TestGoFiles, XTestGoFiles []string
}

func (p pkg) sources() []string { return slices.Concat(p.GoFiles, p.CgoFiles, p.SFiles) }
func (p pkg) tests() []string   { return slices.Concat(p.TestGoFiles, p.XTestGoFiles) }

// listPackages returns the packages of the module in dir, by import path.
func listPackages(dir string, flags ...string) (map[string]pkg, error) {
	out, err := output(dir, "go", append(append([]string{"list", "-json=Dir,ImportPath,GoFiles,CgoFiles,SFiles,TestGoFiles,XTestGoFiles"}, flags...), "./...")...)
	packages := map[string]pkg{}
	for dec := json.NewDecoder(strings.NewReader(out)); err == nil; {
		var p pkg
		if err = dec.Decode(&p); err == nil {
			packages[p.ImportPath] = p
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return packages, err
}

// withoutRace returns the runs that complete a run under the race detector of the
// module in dir: all tests of a package whose code differs without it, the tests in
// files that are only built without it, and the tests in asked. A test file that is
// only built without the detector and has no test is an error: a test that reads a
// constant of it would be forgotten here, so testkit.Race exists.
func withoutRace(dir string, asked map[testID]bool) (runs []testRun, err error) {
	with, err := listPackages(dir, raceFlags...)
	if err != nil {
		return nil, err
	}
	without, err := listPackages(dir)
	if err != nil {
		return nil, err
	}
	for _, path := range slices.Sorted(maps.Keys(without)) {
		plain, raced := without[path], with[path]
		if !slices.Equal(plain.sources(), raced.sources()) {
			runs = append(runs, testRun{dir: dir, packages: path, flags: []string{noVet}})
			continue
		}
		var names []string
		for id := range asked {
			if id.Package == path {
				names = append(names, id.Test)
			}
		}
		for _, file := range plain.tests() {
			if slices.Contains(raced.tests(), file) {
				continue
			}
			source, err := os.ReadFile(filepath.Join(plain.Dir, file))
			if err != nil {
				return nil, err
			}
			found := testFunc.FindAllSubmatch(source, -1)
			if len(found) == 0 {
				return nil, fmt.Errorf("%s/%s is only built without the race detector and has no test: use testkit.Race or testkit.NoRace", path, file)
			}
			for _, m := range found {
				names = append(names, string(m[1]))
			}
		}
		if len(names) > 0 {
			runs = append(runs, testRun{dir: dir, packages: path, flags: []string{noVet, onlyTests(names)}})
		}
	}
	return runs, nil
}

// onlyTests returns the flag that runs these tests alone.
func onlyTests(names []string) string {
	slices.Sort(names)
	return "-run=^(" + strings.Join(slices.Compact(names), "|") + ")$"
}

// testFunc matches the beginning of a function that go test runs.
var testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example|Benchmark)(?:[A-Z0-9_]\w*)?)\(\w* ?(?:\*testing\.[TFB])?\)`)
