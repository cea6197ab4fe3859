package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// test runs the tests of every module, prints one line a package and the whole
// output of what failed, and at the end says out loud what was skipped and
// why. With REQUIRE=all a skipped test is a failure. With -nightly=PART as the
// first argument it runs the tests of that part of the nightly run instead.
func test(args []string) error {
	dirs, err := modules()
	if err != nil {
		return err
	}
	r := newReport(os.Stdout)
	var runs []testRun
	if len(args) > 0 && strings.HasPrefix(args[0], "-nightly=") {
		if runs, err = nightlyRuns(dirs, strings.TrimPrefix(args[0], "-nightly="), args[1:]); err != nil {
			return err
		}
	} else {
		for _, dir := range dirs {
			runs = append(runs, testRun{dir: dir, flags: args, packages: "./..."})
		}
	}
	if err := runTests(r, runs); err != nil {
		return err
	}
	return r.finish(requireAll())
}

// A testRun is one run of go test.
type testRun struct {
	dir      string // of the module
	flags    []string
	packages string
	env      []string // added to that of this process
}

// sideBySide is how many runs of go test there are at a time. Each has two test
// programs going on two cores, and many of them wait.
const sideBySide = 2

// runTests runs tests into r. Failed tests are in the report, not in the error.
func runTests(r *report, runs []testRun) error {
	var running sync.WaitGroup
	slots := make(chan struct{}, sideBySide)
	errs := make([]error, len(runs))
	for i, run := range runs {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			errs[i] = run.into(r)
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

func (run testRun) into(r *report) error {
	args := append([]string{"test", "-json", "-timeout=20m"}, run.flags...)
	cmd := exec.Command("go", append(args, run.packages)...)
	cmd.Dir, cmd.Env, cmd.Stderr = run.dir, append(os.Environ(), run.env...), os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	failed, err := r.read(out)
	if err != nil {
		return fmt.Errorf("read the output of go test in %s: %w", run.dir, err)
	}
	err = cmd.Wait()
	r.spent(cmd.ProcessState)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if failed == 0 { // go test failed before it had a package to name
			r.fail("go test in %s: %v", run.dir, err)
		}
		return nil
	}
	return err
}
