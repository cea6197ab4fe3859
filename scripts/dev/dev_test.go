package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/testkit"
)

func TestReport(t *testing.T) {
	stream := `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestA/sub","Elapsed":1.5}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":2}
{"Action":"output","Package":"p","Test":"TestB","Output":"=== RUN   TestB\n"}
{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:3: needs tmux\n"}
{"Action":"output","Package":"p","Test":"TestB","Output":"--- SKIP: TestB (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestB"}
{"Action":"pass","Package":"p","Elapsed":0.5}
{"Action":"skip","Package":"without"}
`
	run := func(stream string, requireAll bool) (string, error) {
		var out bytes.Buffer
		r := newReport(&out)
		if _, err := r.read(strings.NewReader(stream)); err != nil {
			t.Fatal(err)
		}
		err := r.finish(requireAll)
		return out.String(), err
	}
	out, err := run(stream, false)
	if err != nil || !strings.Contains(out, "p.TestB: b_test.go:3: needs tmux\n") || !strings.Contains(out, "\nslowest:\n     2.00s p.TestA\n     0.00s p.TestB\n\n") || !strings.HasSuffix(out, "\n2 passed, 0 failed, 1 skipped\n") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := run(stream, true); err == nil {
		t.Error("a skipped test passed where all are required")
	}
	if _, err := run(`{"Action":"skip","Package":"without"}`, false); err == nil {
		t.Error("a run without a test passed")
	}
	failing := stream + `{"Action":"output","Package":"q","Test":"TestC","Output":"    c_test.go:9: broken\n"}
{"Action":"fail","Package":"q","Test":"TestC"}
{"Action":"fail","Package":"q"}
`
	if out, err := run(failing, false); err == nil || strings.Count(out, "c_test.go:9: broken") != 2 || !strings.Contains(out, "\nFAILED, with the last lines of output:\nq.TestC:\n    c_test.go:9: broken\nq:\n\n") || !strings.HasSuffix(out, "\n2 passed, 2 failed, 1 skipped\n") {
		t.Errorf("%v\n%s", err, out)
	}
	left := `{"Action":"attr","Package":"p","Test":"TestA","Key":"nightly","Value":"engines"}
{"Action":"skip","Package":"p","Test":"TestA"}
{"Action":"attr","Package":"p","Test":"TestB/sub","Key":"norace","Value":"it allocates"}
{"Action":"skip","Package":"p","Test":"TestB/sub"}
{"Action":"pass","Package":"p","Test":"TestB"}
{"Action":"attr","Package":"p","Test":"TestC","Key":"rounds","Value":"kills"}
{"Action":"pass","Package":"p","Test":"TestC"}
`
	if out, err := run(left, true); err != nil || !strings.Contains(out, "PARTS=engines, or there with more rounds:\n  p.TestA\n") || !strings.Contains(out, "PARTS=kills, or there with more rounds:\n  p.TestC\n") || !strings.HasSuffix(out, ", 2 left to other runs\n2 passed, 0 failed, 0 skipped\n") {
		t.Errorf("%v\n%s", err, out)
	}
	// A test that makes fewer rounds and then lacks something is skipped all the same.
	if out, err := run(left+`{"Action":"attr","Package":"p","Test":"TestD","Key":"rounds","Value":"kills"}
{"Action":"skip","Package":"p","Test":"TestD"}
`, true); err == nil {
		t.Errorf("no error\n%s", out)
	}
}

// TestAttacks: each attack of a test is a row with the test's result, and a test that ends
// without any has a row too.
func TestAttacks(t *testing.T) {
	row := func(test, attack string) string {
		return `{"Action":"attr","Package":"p","Test":"` + test + `","Key":"attack","Value":"{\"attack\":\"` + attack + `\",\"times\":3}"}` + "\n"
	}
	end := func(test, action string) string {
		return `{"Action":"` + action + `","Package":"p","Test":"` + test + `"}` + "\n"
	}
	r := newReport(new(bytes.Buffer))
	if _, err := r.read(strings.NewReader(row("TestRedteamB", "one") + row("TestRedteamB", "two") + end("TestRedteamB", "pass") +
		row("TestRedteamA/x", "three") + end("TestRedteamA/x", "fail") + end("TestRedteamA", "fail") +
		end("TestRedteamSilent", "pass") + end("TestOther", "pass") +
		`{"Action":"output","Package":"p","Test":"TestRedteamSkipped","Output":"    a_test.go:3: this needs nginx\n"}` + end("TestRedteamSkipped", "skip") +
		end("TestRedteamStops", "fail"))); err != nil {
		t.Fatal(err)
	}
	res, err := r.attackResults()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range res.Attacks {
		got = append(got, fmt.Sprintf("%s %d %s %s", a.Attack.Attack, a.Times, a.Measured, a.Verdict))
	}
	want := []string{"three 3  FAILED", "one 3  held", "two 3  held", "TestRedteamSilent 0 the test reports no attack FAILED",
		"TestRedteamSkipped 0 a_test.go:3: this needs nginx not tried", "TestRedteamStops 0 no reason given FAILED"}
	if !slices.Equal(got, want) || res.Failed != 3 || res.NotTried != 1 {
		t.Errorf("%d failed, %d not tried, %q", res.Failed, res.NotTried, got)
	}
}

// writeFiles writes files of these names and texts below dir.
func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRace runs a module under the race detector and without it: each test is in
// one of the runs at least, and in the second only what the first had not.
func TestRace(t *testing.T) {
	t.Setenv("GOWORK", "off")
	t.Setenv("ROLLWAY_NIGHTLY", "")
	dir := t.TempDir()
	const test = "package p\n\nimport \"testing\"\n\n"
	writeFiles(t, dir, map[string]string{
		"go.mod":            "module m\n\ngo 1.26\n",
		"p/p.go":            "package p\n",
		"p/p_test.go":       test + "func TestBoth(t *testing.T) {}\nfunc TestAsks(t *testing.T) { t.Run(\"sub\", func(t *testing.T) { t.Attr(\"norace\", \"it allocates\"); if raced { t.SkipNow() } }) }\n",
		"p/race_test.go":    "//go:build race\n\n" + test + "const raced = true\n\nfunc TestRaceOnly(t *testing.T) {}\n",
		"p/norace_test.go":  "//go:build !race\n\n" + test + "const raced = false\n\nfunc TestNoRaceOnly(t *testing.T) {}\n",
		"code/a.go":         "package p\n",
		"code/b.go":         "//go:build !race\n\npackage p\n",
		"code/code_test.go": test + "func TestOfCode(t *testing.T) {}\n",
	})
	var out bytes.Buffer
	r := newReport(&out)
	names := func() []string {
		var all []string
		for id := range r.ended {
			all = append(all, id.Test)
		}
		slices.Sort(all)
		return all
	}
	rest, err := raceIn(r, []string{dir})
	if want := []string{"TestAsks", "TestBoth", "TestOfCode", "TestRaceOnly"}; err != nil || !slices.Equal(names(), want) {
		t.Fatalf("under the race detector %v, want %v\n%v\n%s", names(), want, err, &out)
	}
	clear(r.ended)
	err = runTests(r, sideBySide, rest)
	if want := []string{"TestAsks", "TestNoRaceOnly", "TestOfCode"}; err != nil || !slices.Equal(names(), want) || r.failed > 0 {
		t.Fatalf("without it %v, want %v\n%v\n%s", names(), want, err, &out)
	}
	writeFiles(t, dir, map[string]string{"p/norace_test.go": "//go:build !race\n\npackage p\n\nconst raced = false\n"})
	if _, err := raceIn(r, []string{dir}); err == nil || !strings.Contains(err.Error(), "m/p/norace_test.go is only built without the race detector and has no test") {
		t.Errorf("a constant that no run is chosen by gives %v", err)
	}
}

func TestFindNightly(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"a_test.go":     "package p\n\nfunc TestA(t *testing.T) {\n\ttestkit.Nightly(t, testkit.Engines, \"large\")\n}\n\nfunc TestB(t *testing.T) {\n\tif n := testkit.Rounds(t, testkit.Kills, 1, 2); n > 0 {\n\t}\n\ttestkit.Nightly(t, testkit.Engines, \"\")\n}\n",
		"sub/b_test.go": "package p\n\nfunc TestC(t *testing.T) {\n\ttestkit.Rounds(t, testkit.Kills, 1, 2)\n\ttestkit.Rounds(t, testkit.Kills, 3, 4)\n}\n",
	})
	got, err := findNightly(dir)
	want := map[string]map[string][]string{"engines": {".": {"TestA", "TestB"}}, "kills": {".": {"TestB"}, "sub": {"TestC"}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	runs, err := nightlyRuns([]string{dir}, "kills", []string{"-v"})
	if err != nil || len(runs) != 2 || !slices.Equal(runs[1].packages, []string{"./sub"}) || !slices.Equal(runs[1].flags, []string{"-run=^(TestC)$", "-v"}) || !slices.Equal(runs[1].env, []string{"ROLLWAY_NIGHTLY=kills"}) {
		t.Errorf("%+v, %v", runs, err)
	}
	if _, err := nightlyRuns([]string{dir}, "bench", nil); err == nil {
		t.Error("a part without a test has runs")
	}
	for text, want := range map[string]string{
		"func helper(t *testing.T) {\n\ttestkit.Nightly(t, testkit.Engines, \"\")\n}": "not in the function of a test",
		"func TestX(t *testing.T) {\n\ttestkit.Rounds(t, \"engines\", 1, 2)\n}":       "has to be a constant",
		"func TestX(t *testing.T) {\n\ttestkit.Rounds(t, testkit.Other, 1, 2)\n}":     "has to be a constant",
	} {
		writeFiles(t, dir, map[string]string{"bad_test.go": "package p\n\n" + text + "\n"})
		if _, err := findNightly(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestNightlyParts: each part that tests name has tests in this checkout and a
// place in the nightly run.
func TestNightlyParts(t *testing.T) {
	if _, err := os.Stat("../../go.work"); err != nil {
		testkit.Missing(t, "a whole checkout: "+err.Error())
	}
	t.Chdir("../..")
	dirs, err := modules()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range partConstants {
		if chosen, err := chooseParts([]string{name}); err != nil || len(chosen) != 1 {
			t.Errorf("%v, %v", chosen, err)
		}
		if _, err := nightlyRuns(dirs, name, nil); err != nil {
			t.Error(err)
		}
	}
	var total time.Duration
	for _, p := range parts {
		total += p.limit
	}
	if total > 132*time.Minute {
		t.Errorf("the parts may take %v, more than 132 minutes", total)
	}
}

// TestPart: all commands of a part run, and what runs at its limit is ended with all
// that it started.
func TestPart(t *testing.T) {
	testkit.Program(t, "timeout")
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"ok.sh":   "echo first\necho '3 passed, 0 failed'\necho after\ntouch $1/shared\n",
		"fail.sh": "test -e $1/shared || exit 9\necho broken\nexit 1\n",
		"hang.sh": "echo begun\nsleep 1000 &\nwait\n",
	})
	took := regexp.MustCompile(` +[\d.]+m?s( of|  bash)`)
	for want, p := range map[string]part{
		"some     FAILED of 1h0m0s, DATE\n  passed  bash ok.sh TMP\n                   3 passed, 0 failed\n  FAILED  bash fail.sh TMP\n                   broken\n  passed  bash ok.sh TMP\n                   3 passed, 0 failed\n": {"some", time.Hour, []command{{dir, "bash ok.sh TMP"}, {dir, "bash fail.sh TMP"}, {dir, "bash ok.sh TMP"}}},
		"fine     passed of 1h0m0s, DATE\n  passed  bash ok.sh TMP\n                   3 passed, 0 failed\n":                                                                                                                         {"fine", time.Hour, []command{{dir, "bash ok.sh TMP"}}},
		"hangs    FAILED of 50ms, DATE\n  FAILED  bash hang.sh\n                   ended by the part's limit of 50ms\n":                                                                                                              {"hangs", 50 * time.Millisecond, []command{{dir, "bash hang.sh"}}},
	} {
		report := p.run(t.Context(), false)
		if hasPassed(report) != (p.name == "fine") {
			t.Errorf("passed: %t\n%s", hasPassed(report), report)
		}
		got := took.ReplaceAllString(report, "$1")
		if got = strings.Replace(got, time.Now().UTC().Format(time.DateOnly), "DATE", 1); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestNightlyText(t *testing.T) {
	tests := "tests    passed     1m1s of 10m0s, 2026-12-01\n  passed       1s  make this\n"
	fuzz := "fuzz     FAILED     1m0s of 13m0s, 2026-12-01\n"
	text := nightlyText("abc", "2 cores", map[string]string{"tests": tests, "fuzz": fuzz})
	for _, want := range []string{"commit   abc\nmachine  2 cores\n\n" + tests, "\n" + fuzz, "\nsoak     not run\n", "\n1 passed, 1 failed, 7 not run\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if hasPassed("tests    passed     1m1s of 10m0s, 2026-12-01, with changes that are not committed\n") {
		t.Error("a run with changes counts for the commit")
	}
}

func TestFindFuzz(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"a_test.go":               "func FuzzRoot(f *testing.F) {}\nfunc FuzzNot(t *testing.T) {}\n",
		"a.go":                    "func FuzzNoTest(f *testing.F) {}\n",
		"sub/deep/b_test.go":      "func FuzzDeep(f *testing.F) {}\n",
		"nested/go.mod":           "module nested\n",
		"nested/c_test.go":        "func FuzzNested(f *testing.F) {}\n",
		"testdata/fuzz/d_test.go": "func FuzzData(f *testing.F) {}\n",
	})
	got, err := findFuzz(dir)
	want := []fuzzTarget{{dir, ".", "FuzzRoot"}, {dir, "sub/deep", "FuzzDeep"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("findFuzz = %+v, %v, want %+v", got, err, want)
	}
}

// Real fuzz targets, built and run in a module of their own.
func TestFuzzRun(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/fuzzrun")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/fuzzrun\n\ngo 1.26\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOWORK", "off")
	targets, err := findFuzz(dir)
	if err != nil || len(targets) != 5 {
		t.Fatalf("%v, %v", targets, err)
	}
	f, err := newFuzzer()
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(f.dir)
	f.cache = t.TempDir()
	want := map[string]string{ // what is said, or the error
		"FuzzGood":         "2 seeds, fuzz: elapsed: ",
		"FuzzEmpty":        "the seed corpus is empty",
		"FuzzBadSeed":      "run the seeds: exit status 1",
		"FuzzFinds":        "Failing input written to ",
		"FuzzDoesNotBuild": "undefined: testing",
	}
	for _, target := range targets {
		said, err := f.run(target, 500*time.Millisecond)
		if (err == nil) != (target.name == "FuzzGood") {
			t.Errorf("%s: %q, %v", target.name, said, err)
		}
		if !strings.Contains(fmt.Sprint(said, err), want[target.name]) {
			t.Errorf("%s: %q, %v, want %q", target.name, said, err, want[target.name])
		}
	}
	if found, err := filepath.Glob(filepath.Join(dir, "p", "testdata", "fuzz", "FuzzFinds", "*")); err != nil || len(found) != 1 {
		t.Errorf("found inputs: %q, %v", found, err)
	}
}

func TestEndedByDeadline(t *testing.T) {
	const (
		progress = "fuzz: elapsed: 0s, gathering baseline coverage: 0/41 completed\nfuzz: elapsed: 5s, execs: 506104 (92898/sec), new interesting: 0 (total: 41)\n"
		verdict  = "FAIL\n"
	)
	for _, tt := range []struct {
		name, said string
		want       bool
	}{
		{"the deadline alone", "--- FAIL: FuzzTrace (5.23s)\n    context deadline exceeded\n", true},
		{"an input", "--- FAIL: FuzzTrace (0.02s)\n    --- FAIL: FuzzTrace (0.00s)\n        x_test.go:9: bad\n\n    Failing input written to testdata/fuzz/FuzzTrace/1\n", false},
		{"an input that meets a deadline", "--- FAIL: FuzzTrace (0.02s)\n    --- FAIL: FuzzTrace (0.00s)\n        context deadline exceeded\n", false},
		{"a worker that hangs", "--- FAIL: FuzzTrace (5.23s)\n    fuzzing process hung or terminated unexpectedly: exit status 2\n", false},
		{"another target", "--- FAIL: FuzzOther (5.23s)\n    context deadline exceeded\n", false},
	} {
		if got := endedByDeadline("FuzzTrace", []byte(progress+tt.said+verdict)); got != tt.want {
			t.Errorf("%s: %t, want %t", tt.name, got, tt.want)
		}
	}
}
