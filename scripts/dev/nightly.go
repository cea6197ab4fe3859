package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
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

// parts are in the order in which they run. Their limits come to 90 minutes.
var parts = []part{
	{"tests", 10 * time.Minute, []command{
		{"", "scripts/setup"},
		{"", "go run ./scripts/dev test"},
	}},
	{testkit.Engines, 25 * time.Minute, []command{{"", "go run ./scripts/dev test -nightly=engines"}}},
	{testkit.Kills, 12 * time.Minute, []command{{"", "go run ./scripts/dev test -nightly=kills"}}},
	{testkit.Bench, 18 * time.Minute, slices.Concat(
		[]command{{"", "go run ./scripts/dev test -nightly=bench"}}, programs)},
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
	{"bench", "TMP/bench ingest-chaos -short -o TMP/chaos.json"},
	{"bench", "TMP/bench alloc -short -o TMP/allocstudy.json"},
	{"bench", "TMP/bench tables -results TMP -check logger writers latency direct relay ingest alloc reliability stuck ingest-chaos"},
}

const (
	nightlyState  = ".nightly" // of each commit a folder with a file for each part; git ignores it
	nightlyReport = "docs/results/nightly.txt"
)

// nightly runs what takes too long for every commit, in parts, and writes the
// report. Without names it runs all parts that have not passed on this commit.
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
	commit, dirty, err := checkout()
	if err != nil {
		return err
	}
	if err := os.Setenv("REQUIRE", "all"); err != nil {
		return err
	}
	state := filepath.Join(nightlyState, commit)
	if err := os.MkdirAll(state, 0o755); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	for _, p := range chosen {
		if ctx.Err() != nil {
			break
		}
		file := filepath.Join(state, p.name+".json")
		if last, err := loadOutcome(file); err == nil && last.Passed && !last.Changed && !dirty && !*again {
			fmt.Printf("\n==> %s has passed on this commit\n", p.name)
			continue
		}
		o := p.run(ctx)
		o.Changed = dirty
		if err := o.save(file); err != nil {
			return err
		}
	}
	outcomes := map[string]outcome{}
	for _, p := range parts {
		o, err := loadOutcome(filepath.Join(state, p.name+".json"))
		if err == nil {
			outcomes[p.name] = o
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	text := nightlyText(commit, machine(), outcomes)
	fmt.Printf("\n%s", text)
	if err := os.WriteFile(nightlyReport, []byte(text), 0o644); err != nil {
		return err
	}
	for _, p := range chosen {
		if o, is := outcomes[p.name]; !is || !o.Passed {
			return errors.New("not all parts passed")
		}
	}
	return nil
}

func chooseParts(names []string) ([]part, error) {
	if len(names) == 0 {
		return parts, nil
	}
	var chosen []part
	for _, p := range parts {
		if slices.Contains(names, p.name) {
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

// checkout returns the commit that is checked out, and whether anything but the
// report differs from it.
func checkout() (commit string, dirty bool, err error) {
	out, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "", false, fmt.Errorf("git rev-parse: %w", withStderr(err))
	}
	status, err := exec.Command("git", "status", "--porcelain", "--", ".", ":!"+nightlyReport).Output()
	if err != nil {
		return "", false, fmt.Errorf("git status: %w", withStderr(err))
	}
	return strings.TrimSpace(string(out)), len(status) > 0, nil
}

// machine says what the run had.
func machine() string {
	model := runtime.GOARCH
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if _, rest, is := strings.Cut(string(info), "model name\t: "); is {
			model, _, _ = strings.Cut(rest, "\n")
		}
	}
	return fmt.Sprintf("%d cores, %s, %s, %s", runtime.NumCPU(), model, runtime.GOOS, runtime.Version())
}

// An outcome is what became of a part.
type outcome struct {
	Passed   bool
	Changed  bool // the work tree differed from the commit
	Date     string
	Took     time.Duration
	Commands []commandOutcome
}

type commandOutcome struct {
	Line   string
	Passed bool
	Took   time.Duration
	Last   string // line that it printed, or what was wrong with it
}

func loadOutcome(file string) (o outcome, err error) {
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &o)
	}
	return o, err
}

func (o outcome) save(file string) error {
	data, err := json.MarshalIndent(o, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o644)
}

// run runs the part's commands, all of them whatever fails, until its limit.
func (p part) run(ctx context.Context) outcome {
	ctx, cancel := context.WithTimeoutCause(ctx, p.limit, fmt.Errorf("the part's limit of %v", p.limit))
	defer cancel()
	begin := time.Now()
	o := outcome{Passed: true, Date: begin.UTC().Format(time.DateOnly)}
	tmp, err := os.MkdirTemp("", "rollway-nightly")
	if err != nil {
		return outcome{Commands: []commandOutcome{{Line: p.name, Last: err.Error()}}}
	}
	defer os.RemoveAll(tmp)
	for _, c := range p.commands {
		fmt.Printf("\n==> %s: %s\n", p.name, c.line)
		result := c.run(ctx, tmp)
		o.Commands = append(o.Commands, result)
		o.Passed = o.Passed && result.Passed
	}
	o.Took = time.Since(begin)
	return o
}

func (c command) run(ctx context.Context, tmp string) commandOutcome {
	args := strings.Fields(strings.ReplaceAll(c.line, "TMP", tmp))
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	ownGroup(cmd) // all that it starts ends with it
	cmd.Cancel = func() error { killGroup(cmd); return nil }
	cmd.WaitDelay = time.Minute
	cmd.Dir = c.dir
	last := &lastLine{w: os.Stdout}
	cmd.Stdout, cmd.Stderr = last, last
	begin := time.Now()
	err := cmd.Run()
	o := commandOutcome{Line: c.line, Passed: err == nil, Took: time.Since(begin), Last: last.line()}
	if ctx.Err() != nil {
		o.Last = "ended by " + context.Cause(ctx).Error()
	} else if o.Last == "" && err != nil {
		o.Last = err.Error()
	}
	return o
}

// A lastLine passes on what is written and keeps the end of it.
type lastLine struct {
	w   io.Writer
	end []byte
}

func (l *lastLine) Write(p []byte) (int, error) {
	l.end = append(l.end, p...)
	l.end = l.end[max(0, len(l.end)-1000):]
	return l.w.Write(p)
}

// line returns the closing line of tests if there is one, else the last line.
func (l *lastLine) line() (last string) {
	for line := range strings.Lines(string(l.end)) {
		line = strings.TrimSpace(line)
		if strings.Contains(line, " passed, ") {
			return line
		}
		last = cmp.Or(line, last)
	}
	return last
}

// nightlyText is the report.
func nightlyText(commit, machine string, outcomes map[string]outcome) string {
	var b strings.Builder
	fmt.Fprintf(&b, "commit   %s\nmachine  %s\n", commit, machine)
	var passed, failed, left int
	var total time.Duration
	for _, p := range parts {
		o, is := outcomes[p.name]
		if !is {
			left++
			fmt.Fprintf(&b, "\n%-8s not run\n", p.name)
			continue
		}
		total += o.Took
		if o.Passed {
			passed++
		} else {
			failed++
		}
		changed := ""
		if o.Changed {
			changed = ", with changes that are not committed"
		}
		fmt.Fprintf(&b, "\n%-8s %s %8v of %v, %s%s\n", p.name, verdict(o.Passed), o.Took.Round(time.Second), p.limit, o.Date, changed)
		for _, c := range o.Commands {
			fmt.Fprintf(&b, "  %s %8v  %s\n", verdict(c.Passed), c.Took.Round(time.Second), c.Line)
			if c.Last != "" {
				fmt.Fprintf(&b, "                   %s\n", c.Last)
			}
		}
	}
	fmt.Fprintf(&b, "\n%v\n%d passed, %d failed, %d not run\n", total.Round(time.Second), passed, failed, left)
	return b.String()
}

func verdict(passed bool) string {
	if passed {
		return "passed"
	}
	return "FAILED"
}

// partConstants are the names that tests give parts of the nightly run by.
var partConstants = map[string]string{"Engines": testkit.Engines, "Kills": testkit.Kills, "Bench": testkit.Bench}

// nightlyRuns returns the runs of the tests that are in a part of the nightly run.
func nightlyRuns(dirs []string, name string, flags []string) ([]testRun, error) {
	var runs []testRun
	for _, dir := range dirs {
		found, err := findNightly(dir)
		if err != nil {
			return nil, err
		}
		for _, folder := range slices.Sorted(maps.Keys(found[name])) {
			runs = append(runs, testRun{dir: dir, packages: "./" + folder, env: []string{"ROLLWAY_NIGHTLY=" + name},
				flags: append([]string{"-run=" + onlyTests(found[name][folder])}, flags...)})
		}
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("no test is in part %q", name)
	}
	return runs, nil
}

// findNightly returns the tests of the module in dir that are in parts of the
// nightly run, by part and folder. It finds them by calls of testkit.Nightly and
// testkit.Rounds, which have to be in the function of the test.
func findNightly(dir string) (map[string]map[string][]string, error) {
	found := map[string]map[string][]string{}
	err := walkTests(dir, func(folder, name string) error {
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		tests := testFuncs(file)
		for _, d := range file.Decls {
			for _, call := range nightlyCalls(d) {
				i := slices.IndexFunc(tests, func(f *ast.FuncDecl) bool { return f == d })
				if i < 0 {
					return fmt.Errorf("%s: a call that is not in the function of a test: the nightly run would not find the test", files.Position(call.Pos()))
				}
				part, is := call.Args[1].(*ast.SelectorExpr)
				if !is || partConstants[part.Sel.Name] == "" {
					return fmt.Errorf("%s: the part has to be a constant of package testkit", files.Position(call.Pos()))
				}
				of := partConstants[part.Sel.Name]
				if found[of] == nil {
					found[of] = map[string][]string{}
				}
				if test := tests[i].Name.Name; !slices.Contains(found[of][folder], test) {
					found[of][folder] = append(found[of][folder], test)
				}
			}
		}
		return nil
	})
	return found, err
}

// nightlyCalls returns the calls of testkit.Nightly and testkit.Rounds in a declaration.
func nightlyCalls(d ast.Decl) (calls []*ast.CallExpr) {
	ast.Inspect(d, func(n ast.Node) bool {
		call, is := n.(*ast.CallExpr)
		if !is || len(call.Args) < 2 {
			return true
		}
		f, is := call.Fun.(*ast.SelectorExpr)
		if !is || f.Sel.Name != "Nightly" && f.Sel.Name != "Rounds" {
			return true
		}
		if x, is := f.X.(*ast.Ident); is && x.Name == "testkit" {
			calls = append(calls, call)
		}
		return true
	})
	return calls
}
