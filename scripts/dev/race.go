package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// raceFlags are those of the run under the race detector. The tag overwrites and
// checks memory that is used again (collector/pool).
var raceFlags = []string{"-race", "-tags=rollway_poison"}

// noVet spares go vet, which scripts/lint runs with all its checks.
const noVet = "-vet=off"

// raceEnv shortens the second for which each program, and each child that a test
// starts, otherwise waits before it ends for reports of races.
const raceEnv = "GORACE=atexit_sleep_ms=50"

// race runs every test under the race detector, and then without it whatever
// that run left out: see withoutRace. One report is about both.
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

// raceIn runs the tests of the modules in dirs under the race detector and
// returns the runs that make up for it.
func raceIn(r *report, dirs []string) (rest []testRun, err error) {
	var runs []testRun
	for _, dir := range dirs {
		runs = append(runs, testRun{dir: dir, flags: append(slices.Clone(raceFlags), noVet), packages: "./...", env: []string{raceEnv}})
	}
	if err := runTests(r, runs); err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		with, err := listPackages(dir, raceFlags...)
		if err != nil {
			return nil, err
		}
		without, err := listPackages(dir)
		if err != nil {
			return nil, err
		}
		runs, err := withoutRace(dir, with, without, r.norace)
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
	cmd := exec.Command("go", append(append([]string{"list", "-json=Dir,ImportPath,GoFiles,CgoFiles,SFiles,TestGoFiles,XTestGoFiles"}, flags...), "./...")...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list in %s: %w", dir, withStderr(err))
	}
	packages := map[string]pkg{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list in %s: %w", dir, err)
		}
		packages[p.ImportPath] = p
	}
}

// withoutRace returns the runs that make up for a run under the race detector of
// the module in dir: all tests of a package whose code is another one without
// it, those in files that are only built without it, and those that said that
// they are for such a run, asked. A test file that is only built without the
// detector and has no test is an error: tests that go by a constant in it would be
// forgotten here, and testkit.Race is for them.
func withoutRace(dir string, with, without map[string]pkg, asked map[testID]bool) ([]testRun, error) {
	var runs []testRun
	for _, path := range slices.Sorted(maps.Keys(without)) {
		plain, raced := without[path], with[path]
		if !slices.Equal(plain.sources(), raced.sources()) {
			runs = append(runs, testRun{dir: dir, packages: path, flags: []string{noVet}})
			continue
		}
		names := map[string]bool{}
		for id := range asked {
			if id.Package == path {
				names[id.Test] = true
			}
		}
		for _, file := range plain.tests() {
			if slices.Contains(raced.tests(), file) {
				continue
			}
			found, err := testsIn(filepath.Join(plain.Dir, file))
			if err != nil {
				return nil, err
			}
			if len(found) == 0 {
				return nil, fmt.Errorf("%s/%s is only built without the race detector and has no test: use testkit.Race or testkit.NoRace", path, file)
			}
			for _, name := range found {
				names[name] = true
			}
		}
		if len(names) > 0 {
			runs = append(runs, testRun{dir: dir, packages: path, flags: []string{noVet, "-run=" + onlyTests(slices.Sorted(maps.Keys(names)))}})
		}
	}
	return runs, nil
}

// onlyTests returns the expression for -run that has these tests.
func onlyTests(names []string) string { return "^(" + strings.Join(names, "|") + ")$" }

var testName = regexp.MustCompile(`^(Test|Fuzz|Example|Benchmark)([^a-z]|$)`)

// testFuncs returns the functions of a file that go test runs, benchmarks too.
func testFuncs(file *ast.File) (funcs []*ast.FuncDecl) {
	for _, d := range file.Decls {
		if f, is := d.(*ast.FuncDecl); is && f.Recv == nil && testName.MatchString(f.Name.Name) && f.Name.Name != "TestMain" {
			funcs = append(funcs, f)
		}
	}
	return funcs
}

// testsIn returns the names of the tests in a source file.
func testsIn(name string) (names []string, err error) {
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, f := range testFuncs(file) {
		names = append(names, f.Name.Name)
	}
	return names, nil
}
