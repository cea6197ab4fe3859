package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"sort"
	"strings"
	"time"
)

// fuzzTarget is one FuzzX function.
type fuzzTarget struct{ module, pkg, name string }

// fuzz runs every FuzzX function of every module for a while. A target whose
// seed corpus is empty fails: it would start from nothing and find nothing.
func fuzz(args []string) error {
	flags := flag.NewFlagSet("fuzz", flag.ExitOnError)
	each := flags.Duration("time", 10*time.Second, "fuzz each target for this long")
	total := flags.Duration("total", time.Hour, "shorten that so that all targets together take no longer than this")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dirs, err := modules()
	if err != nil {
		return err
	}
	var targets []fuzzTarget
	for _, dir := range dirs {
		found, err := findFuzz(dir)
		if err != nil {
			return err
		}
		targets = append(targets, found...)
	}
	if len(targets) == 0 {
		return errors.New("no Fuzz function found")
	}
	limit := min(*each, *total/time.Duration(len(targets))).Round(time.Second)
	limit = max(limit, time.Second)
	built, err := newFuzzBuilds()
	if err != nil {
		return err
	}
	defer built.remove()
	var passed, failed int
	for _, t := range targets {
		said, err := t.run(built, limit)
		if err != nil {
			fmt.Printf("FAIL  %s %s: %v\n", path.Join(t.module, t.pkg), t.name, err)
			failed++
			continue
		}
		fmt.Printf("ok    %s %s: %s\n", path.Join(t.module, t.pkg), t.name, said)
		passed++
	}
	fmt.Printf("\n%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		return errors.New("fuzzing failed")
	}
	return nil
}

var fuzzFunc = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(\w+ \*testing\.F\)`)

// findFuzz lists the fuzz targets of the module in dir, without those of
// modules below it.
func findFuzz(dir string) ([]fuzzTarget, error) {
	var targets []fuzzTarget
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name == dir {
				return nil
			}
			if strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" {
				return fs.SkipDir
			}
			if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, "_test.go") {
			return nil
		}
		src, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, filepath.Dir(name))
		if err != nil {
			return err
		}
		for _, m := range fuzzFunc.FindAllSubmatch(src, -1) {
			targets = append(targets, fuzzTarget{dir, filepath.ToSlash(rel), string(m[1])})
		}
		return nil
	})
	sort.Slice(targets, func(i, j int) bool {
		return targets[i].pkg+targets[i].name < targets[j].pkg+targets[j].name
	})
	return targets, err
}

// fuzzBuilds holds the test program of the package that was fuzzed last. To
// build one takes longer than a second of fuzzing, and a package has several targets.
type fuzzBuilds struct {
	dir, cache string
	of         string // folder of the package
	name       string // import path of the package
	err        error  // of its build
}

func newFuzzBuilds() (*fuzzBuilds, error) {
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", withStderr(err))
	}
	dir, err := os.MkdirTemp("", "rollway-fuzz")
	return &fuzzBuilds{dir: dir, cache: filepath.Join(strings.TrimSpace(string(out)), "fuzz")}, err
}

func (b *fuzzBuilds) remove() { os.RemoveAll(b.dir) }

// program builds the test program of t's package, if it is not the last one.
func (b *fuzzBuilds) program(t fuzzTarget) (string, error) {
	program := filepath.Join(b.dir, "fuzz.test")
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	if folder := filepath.Join(t.module, t.pkg); b.of != folder {
		b.of = folder
		cmd := exec.Command("go", "test", "-c", "-fuzz=.", "-o", program, "./"+t.pkg)
		cmd.Dir = t.module
		var out []byte
		if out, b.err = cmd.CombinedOutput(); b.err != nil {
			b.err = fmt.Errorf("build the tests: %w:\n%s", b.err, out)
			return "", b.err
		}
		list := exec.Command("go", "list", "-f", "{{.ImportPath}}", "./"+t.pkg)
		list.Dir = t.module
		if out, b.err = list.Output(); b.err != nil {
			b.err = fmt.Errorf("go list: %w", withStderr(b.err))
		}
		b.name = strings.TrimSpace(string(out))
	}
	return program, b.err
}

// run checks the target's seeds and fuzzes it. It returns what it came to.
func (t fuzzTarget) run(built *fuzzBuilds, limit time.Duration) (string, error) {
	program, err := built.program(t)
	if err != nil {
		return "", err
	}
	start := func(flags ...string) ([]byte, error) {
		cmd := exec.Command(program, flags...)
		cmd.Dir = filepath.Join(t.module, t.pkg)
		return cmd.CombinedOutput()
	}
	out, err := start("-test.v", "-test.timeout=5m", "-test.run=^"+t.name+"$")
	if err != nil {
		return "", fmt.Errorf("run the seeds: %w:\n%s", err, out)
	}
	seeds := bytes.Count(out, []byte("\n    --- PASS: "+t.name+"/"))
	if seeds == 0 {
		return "", errors.New("the seed corpus is empty: add seeds with f.Add or files in testdata/fuzz")
	}
	// Making an interesting input smaller may take a minute, in which nothing is
	// tried, and fails where the time ends meanwhile.
	cache := filepath.Join(built.cache, filepath.FromSlash(built.name)) // where go test has it too
	out, err = start("-test.run=^$", "-test.fuzz=^"+t.name+"$", "-test.fuzztime="+limit.String(), "-test.fuzzminimizetime=20x", "-test.fuzzcachedir="+cache)
	if err != nil && !endedByDeadline(t.name, out) {
		return "", fmt.Errorf("%w:\n%s", err, out)
	}
	var last string
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "fuzz: elapsed") {
			last = strings.TrimSpace(line)
		}
	}
	return fmt.Sprintf("%d seeds, %s", seeds, last), nil
}

// endedByDeadline reports whether the output of a fuzzer that failed says
// nothing but that its time was over. The fuzzer of Go before 1.27 may call
// that a failure (go.dev/issue/75804). Whatever fails an input says more: a
// line before it, or where the input was written to.
func endedByDeadline(name string, out []byte) bool {
	var said []string
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "fuzz: elapsed: ") && line != "fuzz: waiting for fuzzing process to terminate..." {
			said = append(said, line)
		}
	}
	return len(said) == 3 &&
		strings.HasPrefix(said[0], "--- FAIL: "+name+" (") &&
		said[1] == "context deadline exceeded" &&
		said[2] == "FAIL"
}
