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
	"strings"
	"sync"
	"time"
)

// fuzzTarget is one FuzzX function.
type fuzzTarget struct{ module, pkg, name string }

// fuzz runs every FuzzX function of every module for a while, as many at a time as
// there are processors. A target without a seed fails: it would start from nothing and
// find nothing.
func fuzz(args []string) error {
	flags := flag.NewFlagSet("fuzz", flag.ExitOnError)
	limit := flags.Duration("time", 10*time.Second, "fuzz each target for this long")
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
	*limit = min(*limit, *total*time.Duration(atATime)/time.Duration(len(targets))).Round(time.Millisecond)
	f, err := newFuzzer()
	if err != nil {
		return err
	}
	defer os.RemoveAll(f.dir)
	var ahead sync.WaitGroup
	defer ahead.Wait()
	ahead.Go(func() { // a linker keeps one processor busy, and a target waits now and then
		for _, t := range targets {
			f.build(t)
		}
	})
	var mu sync.Mutex
	failed := 0
	each(len(targets), atATime, func(i int) {
		t := targets[i]
		result, err := f.run(t, *limit)
		mu.Lock()
		defer mu.Unlock()
		state := "ok  "
		if err != nil {
			state, result = "FAIL", err.Error()
			failed++
		}
		fmt.Printf("%s  %s %s: %s\n", state, path.Join(t.module, t.pkg), t.name, result)
	})
	fmt.Printf("\n%d passed, %d failed\n", len(targets)-failed, failed)
	if failed > 0 {
		return errors.New("fuzzing failed")
	}
	return nil
}

var fuzzFunc = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(\w+ \*testing\.F\)`)

// findFuzz lists the fuzz targets of the module in dir.
func findFuzz(dir string) (targets []fuzzTarget, err error) {
	err = walkSource(dir, func(folder, name string, source []byte) error {
		for _, m := range fuzzFunc.FindAllSubmatch(source, -1) {
			if !isTest(name) {
				break
			}
			targets = append(targets, fuzzTarget{dir, folder, string(m[1])})
		}
		return nil
	})
	return targets, err
}

func isTest(name string) bool { return strings.HasSuffix(name, "_test.go") }

// walkSource calls f with each Go file of the module in dir and its folder in the
// module, in the order of their names. A module inside it is not part of it.
func walkSource(dir string, f func(folder, name string, source []byte) error) error {
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != dir:
			_, noModule := os.Stat(filepath.Join(name, "go.mod"))
			if noModule == nil || strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" {
				return fs.SkipDir
			}
			return nil
		case filepath.Ext(name) != ".go":
			return nil
		}
		folder, err := filepath.Rel(dir, filepath.Dir(name))
		if err != nil {
			return err
		}
		source, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return f(filepath.ToSlash(folder), name, source)
	})
}

// A fuzzer builds the test program of each package once and runs its targets.
type fuzzer struct {
	dir   string // of the programs
	cache string // of go test, of inputs that it found

	mu    sync.Mutex
	built map[string]func() *fuzzBuild // by the package's folder
}

// A fuzzBuild is the test program of a package, or the error of building it.
type fuzzBuild struct {
	program string
	path    string // import path
	err     error
}

func newFuzzer() (*fuzzer, error) {
	cache, err := output("", "go", "env", "GOCACHE")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "rollway-fuzz")
	return &fuzzer{dir: dir, cache: filepath.Join(cache, "fuzz"), built: map[string]func() *fuzzBuild{}}, err
}

// build returns the build of t's package. With trimpath another checkout has its packages in
// the cache of go build already, and a linker is twice as fast without debug information.
func (f *fuzzer) build(t fuzzTarget) *fuzzBuild {
	folder := filepath.Join(t.module, t.pkg)
	f.mu.Lock()
	build := f.built[folder]
	if build == nil {
		b := &fuzzBuild{program: filepath.Join(f.dir, fmt.Sprint(len(f.built), ".test.exe"))} // Windows needs the suffix
		build = sync.OnceValue(func() *fuzzBuild {
			if _, b.err = output(t.module, "go", "test", "-c", "-trimpath", "-ldflags=-w", "-fuzz=.", "-o", b.program, "./"+t.pkg); b.err == nil {
				b.path, b.err = output(t.module, "go", "list", "./"+t.pkg)
			}
			return b
		})
		f.built[folder] = build
	}
	f.mu.Unlock()
	return build()
}

// run checks the target's seeds and fuzzes it with one worker. It returns the
// fuzzer's last line.
func (f *fuzzer) run(t fuzzTarget, limit time.Duration) (string, error) {
	b := f.build(t)
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
	// Minimizing an input may take a minute in which nothing is tried, and fails when
	// the time ends meanwhile.
	out, err = start("-test.run=^$", "-test.fuzz=^"+t.name+"$", "-test.fuzztime="+limit.String(), "-test.fuzzminimizetime=20x", "-test.parallel=1",
		"-test.fuzzcachedir="+filepath.Join(f.cache, filepath.FromSlash(b.path))) // where go test looks too
	if err != nil && !endedByDeadline(t.name, out) {
		return "", fmt.Errorf("%w:\n%s", err, out)
	}
	last := bytes.LastIndex(out, []byte("fuzz: elapsed"))
	line, _, _ := bytes.Cut(out[max(last, 0):], []byte("\n"))
	return fmt.Sprintf("%d seeds, %s", seeds, line), nil
}

var fuzzProgress = regexp.MustCompile(`(?m)^fuzz: elapsed: .*\n`)

// endedByDeadline reports whether a fuzzer failed only because its time was over. The
// fuzzer of Go before 1.27 may call that a failure (go.dev/issue/75804). It says more
// about an input that fails.
func endedByDeadline(name string, out []byte) bool {
	rest := bytes.ReplaceAll(fuzzProgress.ReplaceAll(out, nil), []byte("fuzz: waiting for fuzzing process to terminate...\n"), nil)
	return regexp.MustCompile(`^\s*--- FAIL: ` + name + ` \(.*\)\s+context deadline exceeded\s+FAIL\s*$`).Match(rest)
}
