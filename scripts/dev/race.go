package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path"
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
	if err := runTests(r, sideBySide, rest); err != nil {
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
		runs = append(runs, testRun{dir, append(slices.Clone(raceFlags), noVet), []string{"./..."}, []string{raceEnv}})
	}
	if err := runTests(r, sideBySide, runs); err != nil {
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

// raceTag matches a constraint by which code differs under the race detector.
var raceTag = regexp.MustCompile(`(?m)^//go:build .*\b(race|rollway_poison)\b.*$`)

// withoutRace returns the runs that complete a run under the race detector of the
// module in dir: all tests of a package whose code differs without it, the tests in
// files that are only built without it, and the tests in asked. A test file that is
// only built without the detector and has no test is an error: a test that reads a
// constant of it would be forgotten here, so testkit.Race exists.
func withoutRace(dir string, asked map[testID]bool) (runs []testRun, err error) {
	module, err := output(dir, "go", "list", "-m")
	if err != nil {
		return nil, err
	}
	names, whole := map[string][]string{}, map[string]bool{} // by folder
	err = walkSource(dir, func(folder, name string, source []byte) error {
		names[folder] = append(names[folder], "")
		tag := raceTag.Find(source)
		switch {
		case tag == nil:
		case !isTest(name):
			whole[folder] = true
		case bytes.Contains(tag, []byte("!race")):
			found := testFunc.FindAllSubmatch(source, -1)
			if len(found) == 0 {
				return fmt.Errorf("%s is only built without the race detector and has no test: use testkit.Race or testkit.NoRace", path.Join(module, folder, filepath.Base(name)))
			}
			for _, m := range found {
				names[folder] = append(names[folder], string(m[1]))
			}
		}
		return nil
	})
	for id := range asked {
		if folder, is := strings.CutPrefix(path.Join(id.Package, "."), module); is {
			folder = path.Clean("." + folder)
			if names[folder] != nil { // else the package is in another module
				names[folder] = append(names[folder], id.Test)
			}
		}
	}
	var tests, some, all []string // tests of the packages in some, and all packages that are run as a whole
	for _, folder := range slices.Sorted(maps.Keys(names)) {
		found := slices.DeleteFunc(names[folder], func(name string) bool { return name == "" })
		switch {
		case whole[folder]:
			all = append(all, "./"+folder)
		case len(found) > 0:
			some, tests = append(some, "./"+folder), append(tests, found...)
		}
	}
	if len(some) > 0 {
		runs = append(runs, testRun{dir: dir, packages: some, flags: []string{noVet, onlyTests(tests)}})
	}
	if len(all) > 0 {
		runs = append(runs, testRun{dir: dir, packages: all, flags: []string{noVet}})
	}
	return runs, err
}

// onlyTests returns the flag that runs these tests alone.
func onlyTests(names []string) string {
	slices.Sort(names)
	return "-run=^(" + strings.Join(slices.Compact(names), "|") + ")$"
}

// testFunc matches the beginning of a function that go test runs.
var testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example|Benchmark)(?:[A-Z0-9_]\w*)?)\(\w* ?(?:\*testing\.[TFB])?\)`)
