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

// fuzz runs every FuzzX function of every module for a while, as many at a time as
// there are processors. A target whose seed corpus is empty fails: it would start
// from nothing and find nothing.
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
	atATime := runtime.GOMAXPROCS(0)
	limit := min(*each, *total*time.Duration(atATime)/time.Duration(len(targets))).Round(time.Millisecond)
	built, err := newFuzzBuilds()
	if err != nil {
		return err
	}
	defer built.remove()
	type job struct {
		fuzzTarget
		fuzzBuild
	}
	type result struct {
		fuzzTarget
		said string
		err  error
	}
	jobs, results := make(chan job), make(chan result)
	for range atATime {
		go func() {
			for j := range jobs {
				said, err := j.run(j.fuzzBuild, built.cache, limit)
				results <- result{j.fuzzTarget, said, err}
			}
		}()
	}
	go func() {
		for _, t := range targets {
			jobs <- job{t, built.of(t)}
		}
		close(jobs)
	}()
	var passed, failed int
	for range targets {
		r := <-results
		if r.err != nil {
			fmt.Printf("FAIL  %s %s: %v\n", path.Join(r.module, r.pkg), r.name, r.err)
			failed++
			continue
		}
		fmt.Printf("ok    %s %s: %s\n", path.Join(r.module, r.pkg), r.name, r.said)
		passed++
	}
	fmt.Printf("\n%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		return errors.New("fuzzing failed")
	}
	return nil
}

var fuzzFunc = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(\w+ \*testing\.F\)`)

// findFuzz lists the fuzz targets of the module in dir.
func findFuzz(dir string) ([]fuzzTarget, error) {
	var targets []fuzzTarget
	err := walkTests(dir, func(folder, name string) error {
		src, err := os.ReadFile(name)
		for _, m := range fuzzFunc.FindAllSubmatch(src, -1) {
			targets = append(targets, fuzzTarget{dir, folder, string(m[1])})
		}
		return err
	})
	sort.Slice(targets, func(i, j int) bool {
		return targets[i].pkg+targets[i].name < targets[j].pkg+targets[j].name
	})
	return targets, err
}

// walkTests calls f for each test file of the module in dir, with its folder in
// the module. Modules below that one are not in it.
func walkTests(dir string, f func(folder, name string) error) error {
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
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
		folder, err := filepath.Rel(dir, filepath.Dir(name))
		if err != nil {
			return err
		}
		return f(filepath.ToSlash(folder), name)
	})
}

// A fuzzBuild is the test program of a package, or why there is none.
type fuzzBuild struct {
	program string
	name    string // import path of the package
	err     error
}

// fuzzBuilds builds the test program of each package once, as a package may have
// several targets.
type fuzzBuilds struct {
	dir   string
	cache string // of go test, of inputs that it found
	built map[string]fuzzBuild
}

func newFuzzBuilds() (*fuzzBuilds, error) {
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", withStderr(err))
	}
	dir, err := os.MkdirTemp("", "rollway-fuzz")
	return &fuzzBuilds{dir, filepath.Join(strings.TrimSpace(string(out)), "fuzz"), map[string]fuzzBuild{}}, err
}

func (b *fuzzBuilds) remove() { os.RemoveAll(b.dir) }

// of returns the build of t's package.
func (b *fuzzBuilds) of(t fuzzTarget) fuzzBuild {
	folder := filepath.Join(t.module, t.pkg)
	f, is := b.built[folder]
	if is {
		return f
	}
	f.program = filepath.Join(b.dir, fmt.Sprint(len(b.built), ".test.exe")) // Windows wants the suffix
	cmd := exec.Command("go", "test", "-c", "-fuzz=.", "-o", f.program, "./"+t.pkg)
	cmd.Dir = t.module
	list := exec.Command("go", "list", "-f", "{{.ImportPath}}", "./"+t.pkg)
	list.Dir = t.module
	if out, err := cmd.CombinedOutput(); err != nil {
		f.err = fmt.Errorf("build the tests: %w:\n%s", err, out)
	} else if out, err := list.Output(); err != nil {
		f.err = fmt.Errorf("go list: %w", withStderr(err))
	} else {
		f.name = strings.TrimSpace(string(out))
	}
	b.built[folder] = f
	return f
}

// run checks the target's seeds and fuzzes it with one worker. It returns what it
// came to.
func (t fuzzTarget) run(b fuzzBuild, cache string, limit time.Duration) (string, error) {
	if b.err != nil {
		return "", b.err
	}
	start := func(flags ...string) ([]byte, error) {
		cmd := exec.Command(b.program, flags...)
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
	cache = filepath.Join(cache, filepath.FromSlash(b.name)) // where go test has it too
	out, err = start("-test.run=^$", "-test.fuzz=^"+t.name+"$", "-test.fuzztime="+limit.String(), "-test.fuzzminimizetime=20x", "-test.parallel=1", "-test.fuzzcachedir="+cache)
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
