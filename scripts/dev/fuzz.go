package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
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
	var passed, failed int
	for _, t := range targets {
		if err := t.run(limit); err != nil {
			fmt.Printf("FAIL  %s %s: %v\n", path.Join(t.module, t.pkg), t.name, err)
			failed++
			continue
		}
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

// run checks the target's seeds and fuzzes it.
func (t fuzzTarget) run(limit time.Duration) error {
	seeds, err := t.seeds()
	if err != nil {
		return err
	}
	if seeds == 0 {
		return errors.New("the seed corpus is empty: add seeds with f.Add or files in testdata/fuzz")
	}
	// Making an interesting input smaller may take a minute, in which nothing is
	// tried, and fails where the time ends meanwhile.
	cmd := t.goTest("-run=^$", "-fuzz=^"+t.name+"$", "-fuzztime="+limit.String(), "-fuzzminimizetime=20x")
	out, err := cmd.CombinedOutput()
	if err != nil && !endedByDeadline(t.name, out) {
		fmt.Printf("%s\n", out)
		return err
	}
	var last string
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "fuzz: elapsed") {
			last = strings.TrimSpace(line)
		}
	}
	fmt.Printf("ok    %s %s: %d seeds, %s\n", path.Join(t.module, t.pkg), t.name, seeds, last)
	return nil
}

// endedByDeadline reports whether the output of a fuzzer that failed says
// nothing but that its time was over. The fuzzer of Go before 1.27 may call
// that a failure (go.dev/issue/75804). Whatever fails an input says more: a
// line before it, or where the input was written to.
func endedByDeadline(name string, out []byte) bool {
	var said []string
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "fuzz: elapsed: ") {
			said = append(said, line)
		}
	}
	return len(said) == 5 &&
		strings.HasPrefix(said[0], "--- FAIL: "+name+" (") &&
		said[1] == "context deadline exceeded" &&
		said[2] == "FAIL" && said[3] == "exit status 1" &&
		strings.HasPrefix(said[4], "FAIL\t")
}

// seeds counts the seeds by running each as a test.
func (t fuzzTarget) seeds() (int, error) {
	out, err := t.goTest("-json", "-timeout=5m", "-run=^"+t.name+"$").Output()
	n := 0
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var e event
		if err := dec.Decode(&e); err != nil {
			return 0, fmt.Errorf("read the output of go test: %w", err)
		}
		if e.Action == "pass" && strings.HasPrefix(e.Test, t.name+"/") {
			n++
		}
		if err != nil && (e.Action == "output" || e.Action == "build-output") {
			fmt.Print(e.Output)
		}
	}
	if err != nil {
		return 0, fmt.Errorf("run the seeds: %w", withStderr(err))
	}
	return n, nil
}

func (t fuzzTarget) goTest(flags ...string) *exec.Cmd {
	cmd := exec.Command("go", append(append([]string{"test"}, flags...), "./"+t.pkg)...)
	cmd.Dir = t.module
	return cmd
}
