package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// test runs the tests of every module, prints one line a package and the whole
// output of what failed, and at the end says out loud what was skipped and
// why. With REQUIRE=all a skipped test is a failure.
func test(args []string) error {
	dirs, err := modules()
	if err != nil {
		return err
	}
	report := &report{w: os.Stdout, output: map[testID]*strings.Builder{}}
	for _, dir := range dirs {
		if err := goTest(report, dir, args); err != nil {
			return err
		}
	}
	return report.finish(requireAll())
}

// goTest runs one module's tests into r. Failed tests are in the report, not
// in the error.
func goTest(r *report, dir string, args []string) error {
	// Tests of remote may have to build Loki and to fetch OpenSearch first.
	cmd := exec.Command("go", append(append([]string{"test", "-json", "-timeout=60m"}, args...), "./...")...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	failedBefore := r.failed
	if err := r.read(out); err != nil {
		return fmt.Errorf("read the output of go test in %s: %w", dir, err)
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && r.failed == failedBefore {
		r.failed++ // go test itself failed before it had a package to name
		fmt.Fprintf(r.w, "FAIL in %s: %v\n", dir, err)
		return nil
	}
	if exit != nil {
		return nil
	}
	return err
}

type testID struct{ Package, Test string }

// timed is how long a test of a package took, its subtests included, in seconds.
type timed struct {
	testID
	seconds float64
}

// slowest is how many tests are named with the time that they took.
const slowest = 10

// event is one line of go test -json.
type event struct {
	Action, Package, Test, Output, ImportPath string
	Elapsed                                   float64
}

type report struct {
	w                       io.Writer
	output                  map[testID]*strings.Builder // of tests and packages that still run
	passed, failed, skipped int
	skips                   []string
	took                    []timed
	failures                strings.Builder // of finish: by then much may have come between
}

func (r *report) read(src io.Reader) error {
	for dec := json.NewDecoder(src); ; {
		var e event
		if err := dec.Decode(&e); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		r.event(e)
	}
}

func (r *report) event(e event) {
	id := testID{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.w, e.Output)
	case "output":
		if r.output[id] == nil {
			r.output[id] = new(strings.Builder)
		}
		r.output[id].WriteString(e.Output)
	case "pass", "fail", "skip":
		r.end(id, e)
		delete(r.output, id)
	}
}

func (r *report) end(id testID, e event) {
	var said string
	if b := r.output[id]; b != nil {
		said = b.String()
	}
	if id.Test != "" && !strings.Contains(id.Test, "/") {
		r.took = append(r.took, timed{id, e.Elapsed})
	}
	switch {
	case id.Test == "" && e.Action == "pass":
		fmt.Fprintf(r.w, "ok    %-64s %7.2fs\n", id.Package, e.Elapsed)
	case id.Test == "" && e.Action == "fail":
		r.failed++ // also counts a package that did not build or that died
		fmt.Fprintf(r.w, "FAIL  %-64s %7.2fs\n%s", id.Package, e.Elapsed, said)
		fmt.Fprintf(&r.failures, "%s:\n%s", id.Package, lastOf(said, 4000))
	case id.Test == "":
		// A package without tests.
	case e.Action == "pass":
		r.passed++
	case e.Action == "fail":
		r.failed++
		fmt.Fprint(r.w, said)
		fmt.Fprintf(&r.failures, "%s.%s:\n%s", id.Package, id.Test, lastOf(said, 4000))
	case e.Action == "skip":
		r.skipped++
		r.skips = append(r.skips, fmt.Sprintf("%s.%s: %s", id.Package, id.Test, reason(said)))
	}
}

// lastOf returns the last lines of s, of n bytes at most.
func lastOf(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = s[len(s)-n:]
	return "[...]\n" + s[strings.IndexByte(s, '\n')+1:]
}

// reason returns what a skipped test said, without go test's own lines.
func reason(said string) string {
	var lines []string
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return "no reason given"
	}
	return strings.Join(lines, " ")
}

// finish prints what took longest, what was skipped, what failed again, and the
// closing line.
func (r *report) finish(requireAll bool) error {
	slices.SortStableFunc(r.took, func(a, b timed) int { return cmp.Compare(b.seconds, a.seconds) })
	fmt.Fprint(r.w, "\nslowest:\n")
	for _, t := range r.took[:min(slowest, len(r.took))] {
		fmt.Fprintf(r.w, "  %7.2fs %s.%s\n", t.seconds, t.Package, t.Test)
	}
	if len(r.skips) > 0 {
		fmt.Fprintf(r.w, "\nSKIPPED (run with REQUIRE=all to make these fail):\n  %s\n", strings.Join(r.skips, "\n  "))
	}
	if r.failures.Len() > 0 {
		fmt.Fprintf(r.w, "\nFAILED, and said at the end:\n%s", r.failures.String())
	}
	fmt.Fprintf(r.w, "\n%d passed, %d failed, %d skipped\n", r.passed, r.failed, r.skipped)
	switch {
	case r.failed > 0:
		return errors.New("tests failed")
	case r.passed == 0:
		return errors.New("no test ran")
	case requireAll && r.skipped > 0:
		return errors.New("tests were skipped, and REQUIRE=all allows none")
	}
	return nil
}
