package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rollway/rollway/internal/testkit"
)

type testID struct{ Package, Test string }

// top returns the test that id is a subtest of, or id.
func (id testID) top() testID {
	id.Test, _, _ = strings.Cut(id.Test, "/")
	return id
}

func (id testID) String() string { return id.Package + "." + id.Test }

// event is one line of go test -json.
type event struct {
	Action, Package, Test, Output string
	Key, Value                    string // of an attribute
	Elapsed                       float64
}

// slowest is how many tests are named with the time that they took.
const slowest = 10

// A report collects the results of runs of go test. Several may be read at a time.
type report struct {
	begin time.Time

	mu                      sync.Mutex // guards what follows
	w                       io.Writer
	running                 map[testID]*runningTest // tests and packages
	passed, failed, skipped int
	left                    int // to other runs
	skips                   []string
	took                    []event             // ends of tests, with their subtests
	failures                strings.Builder     // repeated at the end
	ended                   map[testID]bool     // tests that are no subtests
	norace                  map[testID]bool     // of ended: they are for a run without the race detector
	nightly                 map[string][]string // tests left to a part of the nightly run
	attacks                 []attack            // in the order in which their tests ended
	cpu                     time.Duration
}

type runningTest struct {
	output  strings.Builder
	attrs   map[string]string
	attacks []string // values of testkit.AttrAttack
}

func newReport(w io.Writer) *report {
	return &report{begin: time.Now(), w: w, running: map[testID]*runningTest{},
		ended: map[testID]bool{}, norace: map[testID]bool{}, nightly: map[string][]string{}}
}

// read reads the output of go test -json and returns how many tests and packages
// failed in it.
func (r *report) read(src io.Reader) (failed int, err error) {
	for dec := json.NewDecoder(src); ; {
		var e event
		if err := dec.Decode(&e); errors.Is(err, io.EOF) {
			return failed, nil
		} else if err != nil {
			return failed, err
		}
		if e.Action == "fail" {
			failed++
		}
		r.event(e)
	}
}

func (r *report) event(e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := testID{e.Package, e.Test}
	t := r.running[id]
	if t == nil {
		t = &runningTest{attrs: map[string]string{}}
		r.running[id] = t
	}
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.w, e.Output)
	case "output":
		t.output.WriteString(e.Output)
	case "attr":
		t.attrs[e.Key] = e.Value
		if e.Key == testkit.AttrAttack {
			t.attacks = append(t.attacks, e.Value)
		}
	case "pass", "fail", "skip":
		r.addAttacks(id, e.Action, t)
		r.end(id, e, t.output.String(), t.attrs)
		delete(r.running, id)
	}
}

// end adds the end of a test or a package.
func (r *report) end(id testID, e event, output string, attrs map[string]string) {
	if id.Test != "" && id == id.top() {
		r.took = append(r.took, e)
		r.ended[id] = true
	}
	if attrs[testkit.AttrNoRace] != "" {
		r.norace[id.top()] = true
	}
	if part := cmp.Or(attrs[testkit.AttrNightly], attrs[testkit.AttrRounds]); part != "" {
		r.nightly[part] = append(r.nightly[part], id.String())
	}
	switch {
	case id.Test == "" && e.Action == "pass":
		fmt.Fprintf(r.w, "ok    %-64s %7.2fs\n", id.Package, e.Elapsed)
	case id.Test == "" && e.Action == "fail": // or a package that did not build
		r.failed++
		fmt.Fprintf(r.w, "FAIL  %-64s %7.2fs\n%s", id.Package, e.Elapsed, output)
		fmt.Fprintf(&r.failures, "%s:\n%s", id.Package, lastOf(output, 4000))
	case id.Test == "":
		// A package without tests.
	case e.Action == "pass":
		r.passed++
	case e.Action == "fail":
		r.failed++
		fmt.Fprint(r.w, output)
		fmt.Fprintf(&r.failures, "%s:\n%s", id, lastOf(output, 4000))
	case attrs[testkit.AttrNoRace] != "" || attrs[testkit.AttrNightly] != "":
		r.left++
	default:
		r.skipped++
		r.skips = append(r.skips, fmt.Sprintf("%s: %s", id, reason(output)))
	}
}

// fail counts a failure that no test has.
func (r *report) fail(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed++
	text := fmt.Sprintf(format, args...)
	fmt.Fprintf(r.w, "FAIL  %s\n", text)
	fmt.Fprintf(&r.failures, "%s\n", text)
}

// spent adds the processor time of a process that has ended, and of its children.
func (r *report) spent(p *os.ProcessState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cpu += p.UserTime() + p.SystemTime()
}

// lastOf returns the last lines of s, at most n bytes.
func lastOf(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = s[len(s)-n:]
	return "[...]\n" + s[strings.IndexByte(s, '\n')+1:]
}

// reason returns the output of a skipped test without go test's own lines.
func reason(output string) string {
	var lines []string
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			lines = append(lines, line)
		}
	}
	return cmp.Or(strings.Join(lines, " "), "no reason given")
}

// finish prints the slowest tests, what was left out and why, the failures again, and
// the closing line.
func (r *report) finish(requireAll bool) error {
	slices.SortStableFunc(r.took, func(a, b event) int { return cmp.Compare(b.Elapsed, a.Elapsed) })
	fmt.Fprint(r.w, "\nslowest:\n")
	for _, e := range r.took[:min(slowest, len(r.took))] {
		fmt.Fprintf(r.w, "  %7.2fs %s\n", e.Elapsed, testID{e.Package, e.Test})
	}
	for _, part := range slices.Sorted(maps.Keys(r.nightly)) {
		fmt.Fprintf(r.w, "\nleft to make nightly PARTS=%s, or there with more rounds:\n  %s\n", part, strings.Join(r.nightly[part], "\n  "))
	}
	if len(r.skips) > 0 {
		fmt.Fprintf(r.w, "\nSKIPPED (run with REQUIRE=all to make these fail):\n  %s\n", strings.Join(r.skips, "\n  "))
	}
	if r.failures.Len() > 0 {
		fmt.Fprintf(r.w, "\nFAILED, with the last lines of output:\n%s", r.failures.String())
	}
	fmt.Fprintf(r.w, "\n%v, %v of processor time, %d left to other runs\n", time.Since(r.begin).Round(time.Second), r.cpu.Round(time.Second), r.left)
	fmt.Fprintf(r.w, "%d passed, %d failed, %d skipped\n", r.passed, r.failed, r.skipped)
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
