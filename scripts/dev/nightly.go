package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rollway/rollway/internal/testkit"
)

// A part of the nightly run passes or fails as a whole. One that has passed is not
// run again on the same commit.
type part struct {
	name     string
	limit    time.Duration
	commands []command
}

// A command is a line of the report. In its arguments TMP is a folder that the
// part's commands share.
type command struct {
	dir  string // "" is the root
	line string
}

// parts are in the order in which they run. Their limits add up to 132 minutes.
var parts = []part{
	{"tests", 10 * time.Minute, []command{
		{"", "scripts/setup"},
		{"", "go run ./scripts/dev test"},
	}},
	{testkit.Engines, 25 * time.Minute, []command{{"", "go run ./scripts/dev test -nightly=engines"}}},
	{testkit.Senders, 12 * time.Minute, []command{{"", "scripts/setup"}, {"", "go run ./scripts/dev test -nightly=senders"}}},
	{testkit.Kills, 12 * time.Minute, []command{{"", "go run ./scripts/dev test -nightly=kills"}}},
	{testkit.Bench, 18 * time.Minute, slices.Concat(
		[]command{{"", "go run ./scripts/dev test -nightly=bench"}}, programs)},
	{testkit.Redteam, 15 * time.Minute, []command{
		{"", "go run ./scripts/dev redteam -o TMP/redteam.json"},
		{"bench", "go run ./cmd/bench tables -results TMP -check redteam"},
	}},
	{"release", 15 * time.Minute, []command{{"", "scripts/release-test"}}},
	{"soak", 12 * time.Minute, []command{{"", "make soak COUNT=5 LIVES=500 BACKLOG=1100000000"}}},
	{"fuzz", 13 * time.Minute, []command{{"", "go run ./scripts/dev fuzz -time 7s -total 11m"}}},
}

// programs are the benchmark programs, which run for real, only briefly: every
// scenario once, its lines checked, the tables made.
var programs = []command{
	{"bench", "go build -o TMP/bench ./cmd/bench"},
	{"bench", "TMP/bench logger -short -o TMP/logger.json"},
	{"bench", "TMP/bench writers -short -o TMP/writers.json"},
	{"bench", "TMP/bench latency -short -o TMP/latency.json"},
	{"bench", "TMP/bench reliability -short -o TMP/reliability.json"},
	{"bench", "TMP/bench stuck -short -o TMP/stuck.json"},
	{"bench", "TMP/bench direct-headline -short -o TMP"},
	{"bench", "TMP/bench direct -short -o TMP"},
	{"bench", "TMP/bench relay -short -o TMP/relay.json"},
	{"bench", "TMP/bench ingest -short -o TMP/ingest.json"},
	{"bench", "TMP/bench alloc -short -o TMP/allocstudy.json"},
	{"bench", "TMP/bench tables -results TMP -check logger writers latency direct relay ingest allocstudy reliability stuck"},
}

const (
	nightlyState  = ".nightly" // for each commit a folder with the report of each part; git ignores it
	nightlyReport = "docs/results/nightly.txt"
)

// nightly runs what takes too long for every commit, in parts, and writes the report.
// Without names it runs all parts that have not passed on this commit.
func nightly(args []string) error {
	flags := flag.NewFlagSet("nightly", flag.ExitOnError)
	again := flags.Bool("again", false, "also run parts that have passed on this commit")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := chooseParts(flags.Args())
	if err != nil {
		return err
	}
	commit, err := output("", "git", "rev-parse", "--short=12", "HEAD")
	if err != nil {
		return err
	}
	dirty, err := output("", "git", "status", "--porcelain", "--", ".", ":!"+nightlyReport)
	if err != nil {
		return err
	}
	state := filepath.Join(nightlyState, commit)
	if err := errors.Join(os.Setenv("REQUIRE", "all"), os.MkdirAll(state, 0o755)); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	for _, p := range chosen {
		file := filepath.Join(state, p.name)
		last, err := os.ReadFile(file)
		switch {
		case ctx.Err() != nil:
			continue
		case err == nil && hasPassed(string(last)) && dirty == "" && !*again:
			fmt.Printf("\n==> %s has passed on this commit\n", p.name)
			continue
		}
		if err := os.WriteFile(file, []byte(p.run(ctx, dirty != "")), 0o644); err != nil {
			return err
		}
	}
	reports := map[string]string{}
	for _, p := range parts {
		text, err := os.ReadFile(filepath.Join(state, p.name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		reports[p.name] = string(text)
	}
	text := nightlyText(commit, machine(), reports)
	fmt.Printf("\n%s", text)
	if err := os.WriteFile(nightlyReport, []byte(text), 0o644); err != nil {
		return err
	}
	for _, p := range chosen {
		if verdict := reports[p.name]; !strings.Contains(firstLine(verdict), " passed ") {
			return errors.New("not all parts passed")
		}
	}
	return nil
}

func chooseParts(names []string) (chosen []part, err error) {
	for _, p := range parts {
		if len(names) == 0 || slices.Contains(names, p.name) {
			chosen = append(chosen, p)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(parts, func(p part) bool { return p.name == name }) {
			return nil, fmt.Errorf("there is no part %q of the nightly run", name)
		}
	}
	return chosen, nil
}

// machine describes the machine for the report.
func machine() string {
	model := runtime.GOARCH
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if _, rest, is := strings.Cut(string(info), "model name\t: "); is {
			model = firstLine(rest)
		}
	}
	return fmt.Sprintf("%d cores, %s, %s, %s", runtime.NumCPU(), model, runtime.GOOS, runtime.Version())
}

// run runs the part's commands until its limit, all of them even if some fail, and
// returns its report.
func (p part) run(ctx context.Context, changed bool) string {
	ctx, cancel := context.WithTimeoutCause(ctx, p.limit, fmt.Errorf("the part's limit of %v", p.limit))
	defer cancel()
	begin := time.Now()
	tmp, err := os.MkdirTemp("", "rollway-nightly")
	defer os.RemoveAll(tmp)
	passed := err == nil
	var commands strings.Builder
	for _, c := range p.commands {
		if err != nil {
			break
		}
		fmt.Printf("\n==> %s: %s\n", p.name, c.line)
		ok, text := c.run(ctx, tmp)
		passed = passed && ok
		commands.WriteString(text)
	}
	note := ""
	if changed {
		note = ", with changes that are not committed"
	}
	return fmt.Sprintf("%-8s %s %8v of %v, %s%s\n%s", p.name, verdict(passed), time.Since(begin).Round(time.Second), p.limit,
		begin.UTC().Format(time.DateOnly), note, commands.String())
}

// hasPassed reports whether a part's report says that it passed, without changes.
func hasPassed(report string) bool {
	first := firstLine(report)
	return strings.Contains(first, " passed ") && !strings.Contains(first, "not committed")
}

// run runs a command. timeout(1) makes a process group of all that it starts, and passes
// on the signal by which ctx ends it.
func (c command) run(ctx context.Context, tmp string) (passed bool, report string) {
	args := append([]string{"--kill-after=10s", "1d"}, strings.Fields(strings.ReplaceAll(c.line, "TMP", tmp))...)
	cmd := exec.CommandContext(ctx, "timeout", args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	cmd.Dir = c.dir
	var end lastBytes
	out := io.MultiWriter(os.Stdout, &end)
	cmd.Stdout, cmd.Stderr = out, out
	begin := time.Now()
	err := cmd.Run()
	last := end.line()
	if ctx.Err() != nil {
		last = "ended by " + context.Cause(ctx).Error()
	} else if last == "" && err != nil {
		last = err.Error()
	}
	report = fmt.Sprintf("  %s %8v  %s\n", verdict(err == nil), time.Since(begin).Round(time.Second), c.line)
	if last != "" {
		report += fmt.Sprintf("                   %s\n", last)
	}
	return err == nil, report
}

// lastBytes keeps the last bytes written.
type lastBytes []byte

func (l *lastBytes) Write(p []byte) (int, error) {
	*l = append(*l, p...)
	*l = (*l)[max(0, len(*l)-1000):]
	return len(p), nil
}

// line returns the closing line of tests if there is one, else the last line.
func (l lastBytes) line() (last string) {
	for line := range strings.Lines(string(l)) {
		line = strings.TrimSpace(line)
		if strings.Contains(line, " passed, ") {
			return line
		}
		last = cmp.Or(line, last)
	}
	return last
}

// nightlyText joins the reports of the parts; "": not run.
func nightlyText(commit, machine string, reports map[string]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "commit   %s\nmachine  %s\n", commit, machine)
	passed, failed, left := 0, 0, 0
	for _, p := range parts {
		report := reports[p.name]
		switch {
		case report == "":
			left++
			report = fmt.Sprintf("%-8s not run\n", p.name)
		case strings.Contains(firstLine(report), " passed "):
			passed++
		default:
			failed++
		}
		b.WriteString("\n" + report)
	}
	fmt.Fprintf(&b, "\n%d passed, %d failed, %d not run\n", passed, failed, left)
	return b.String()
}

func verdict(passed bool) string {
	if passed {
		return "passed"
	}
	return "FAILED"
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// partConstants are the names that tests give parts of the nightly run by.
var partConstants = map[string]string{"testkit.Engines": testkit.Engines, "testkit.Senders": testkit.Senders, "testkit.Kills": testkit.Kills, "testkit.Bench": testkit.Bench, "testkit.Redteam": testkit.Redteam}

// nightlyRuns returns the runs of the tests that are in a part of the nightly run.
func nightlyRuns(dirs []string, name string, flags []string) (runs []testRun, err error) {
	for _, dir := range dirs {
		found, err := findNightly(dir)
		if err != nil {
			return nil, err
		}
		for _, folder := range slices.Sorted(maps.Keys(found[name])) {
			runs = append(runs, testRun{dir, append([]string{onlyTests(found[name][folder])}, flags...), []string{"./" + folder}, []string{"ROLLWAY_NIGHTLY=" + name}})
		}
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("no test is in part %q", name)
	}
	return runs, nil
}

var (
	partCall = regexp.MustCompile(`^[^"/]*testkit\.(?:Nightly|Rounds)\(\w+, ([^,]+),`)
	someFunc = regexp.MustCompile(`^func `)
)

// findNightly returns the tests of the module in dir that are in parts of the nightly
// run, by part and folder. It finds them by the calls of testkit.Nightly and
// testkit.Rounds, which must be in the function of the test.
func findNightly(dir string) (map[string]map[string][]string, error) {
	found := map[string]map[string][]string{}
	err := walkSource(dir, func(folder, name string, source []byte) error {
		if !isTest(name) || !bytes.Contains(source, []byte("testkit.")) {
			return nil // the expressions are slow
		}
		test := ""
		for i, line := range bytes.Split(source, []byte("\n")) {
			if someFunc.Match(line) {
				test = ""
				if m := testFunc.FindSubmatch(line); m != nil {
					test = string(m[1])
				}
			}
			call := partCall.FindSubmatch(line)
			if call == nil {
				continue
			}
			part := partConstants[string(call[1])]
			switch {
			case test == "":
				return fmt.Errorf("%s:%d: a call that is not in the function of a test: the nightly run would not find the test", name, i+1)
			case part == "":
				return fmt.Errorf("%s:%d: the part has to be a constant of package testkit", name, i+1)
			case found[part] == nil:
				found[part] = map[string][]string{}
			}
			if !slices.Contains(found[part][folder], test) {
				found[part][folder] = append(found[part][folder], test)
			}
		}
		return nil
	})
	return found, err
}
