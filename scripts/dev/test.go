package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// test runs the tests of every module. It prints one line for each package, the whole
// output of what failed, and at the end what was skipped and why. With REQUIRE=all a
// skipped test is a failure. With -nightly=PART as the first argument it runs the
// tests of that part of the nightly run instead. It leaves vet to scripts/lint.
func test(args []string) error {
	dirs, err := modules()
	if err != nil {
		return err
	}
	var runs []testRun
	for _, dir := range dirs {
		runs = append(runs, testRun{dir: dir, flags: append([]string{noVet}, args...), packages: []string{"./..."}})
	}
	if len(args) > 0 {
		if part, is := strings.CutPrefix(args[0], "-nightly="); is {
			if runs, err = nightlyRuns(dirs, part, args[1:]); err != nil {
				return err
			}
		}
	}
	r := newReport(os.Stdout)
	if err := runTests(r, sideBySide, runs); err != nil {
		return err
	}
	return r.finish(requireAll())
}

// A testRun is one run of go test.
type testRun struct {
	dir      string // of the module
	flags    []string
	packages []string
	env      []string // added to that of this process
}

// sideBySide is how many runs of go test there are at a time. Each runs two test
// programs on two cores, and many of them wait.
const sideBySide = 3

// runTests runs tests, at most limit runs at a time, and adds them to r. Failed tests are
// in the report, not in the error.
func runTests(r *report, limit int, runs []testRun) error {
	errs := make([]error, len(runs))
	each(len(runs), limit, func(i int) { errs[i] = runs[i].addTo(r) })
	return errors.Join(errs...)
}

func (run testRun) addTo(r *report) error {
	args := append([]string{"test", "-json", "-timeout=20m"}, run.flags...)
	cmd := exec.Command("go", append(args, run.packages...)...)
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
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		if failed == 0 { // go test failed before it could name a package
			r.fail("go test in %s: %v", run.dir, err)
		}
		return nil
	}
	return err
}
