package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestParseReadme(t *testing.T) {
	page := strings.ReplaceAll(`# Page
'''sh
$ git clone x && cd x
$ curl -d '{"msg":"hi"}' \
    http://127.0.0.1
{"accepted":1}
'''
<!-- run: background -->
'''sh
$ make run
listening on …
'''
<!-- run: no, not published yet -->
'''sh
$ go install x@latest
'''
'''go
package main
func main() {}
'''
'''go
log.Info("a fragment")
'''
`, "'''", "```")
	steps, programs, err := parseReadme(page)
	if err != nil {
		t.Fatal(err)
	}
	want := []step{
		{line: 3, command: "git clone x && cd x"},
		{line: 4, command: "curl -d '{\"msg\":\"hi\"}' \\\n    http://127.0.0.1", output: "{\"accepted\":1}\n"},
		{line: 10, command: "make run", output: "listening on …\n", background: true},
		{line: 15, command: "go install x@latest", skip: "not published yet"},
	}
	if !reflect.DeepEqual(steps, want) {
		t.Errorf("steps\n got %+v\nwant %+v", steps, want)
	}
	if len(programs) != 1 || programs[0].line != 18 || programs[0].source != "package main\nfunc main() {}\n" {
		t.Errorf("programs %+v", programs)
	}
	for _, bad := range []string{"no block", "```sh\n$ open", "```sh\noutput first\n```", "<!-- run: maybe -->\n```sh\n$ x\n```"} {
		if _, _, err := parseReadme(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestDifference(t *testing.T) {
	for _, c := range []struct{ shown, got, want string }{
		{"a\nb …\nc\n", "a\nd\nc\n", "not printed as line 2: b …"},
		{"a\n…\nz\n", "a\nb\n", "not printed as line 3: z"},
		{"a\n", "a\nb\n", "more was printed than is shown"},
	} {
		if got := difference(c.shown, c.got); got != c.want {
			t.Errorf("difference(%q, %q) = %q, want %q", c.shown, c.got, got, c.want)
		}
	}
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		shown, got string
		whole      bool
		want       bool
	}{
		{"a\nb\n", "a\nb\n", true, true},
		{"a\nb\n", "a\nb", true, true},
		{"a\nb\n", "a\nb\nc\n", true, false},
		{"a\nb\n", "a\nb\nc\n", false, true},
		{"a.c\n", "abc\n", true, false},
		{"took … s\n", "took 12.5 s\n", true, true},
		{"p50      …\n", "p50   870ns\n", true, true},
		{"p50      …\n", "p50  1.11µs\n", true, true},
		{"p50      …\n", "p50  \n", true, true},
		{"p50      …\n", "p50:  1.11µs\n", true, false},
		{"p50  …  s\n", "p50 1 s\n", true, false},
		{"first\n…\nlast\n", "first\n1\n2\nlast\n", true, true},
		{"first\n…\nlast\n", "first\n1\n2\n", true, false},
		{`{"time":"2026-01-01T00:00:00Z"}`, `{"time":"2031-12-31T23:59:59.123456789+02:00"}`, true, true},
		{"x\n", "", false, false},
	} {
		if got := matches(c.shown, c.got, c.whole); got != c.want {
			t.Errorf("matches(%q, %q, %v) = %v", c.shown, c.got, c.whole, got)
		}
	}
}

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
		r := &report{w: &out, output: map[testID]*strings.Builder{}}
		if err := r.read(strings.NewReader(stream)); err != nil {
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
	if out, err := run(failing, false); err == nil || strings.Count(out, "c_test.go:9: broken") != 2 || !strings.HasSuffix(out, "\nFAILED, and said at the end:\nq.TestC:\n    c_test.go:9: broken\nq:\n\n2 passed, 2 failed, 1 skipped\n") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestFindFuzz(t *testing.T) {
	dir := t.TempDir()
	for name, src := range map[string]string{
		"a_test.go":               "func FuzzRoot(f *testing.F) {}\nfunc FuzzNot(t *testing.T) {}\n",
		"a.go":                    "func FuzzNoTest(f *testing.F) {}\n",
		"sub/deep/b_test.go":      "func FuzzDeep(f *testing.F) {}\n",
		"nested/go.mod":           "module nested\n",
		"nested/c_test.go":        "func FuzzNested(f *testing.F) {}\n",
		"testdata/fuzz/d_test.go": "func FuzzData(f *testing.F) {}\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(src), 0o644); err != nil {
			t.Fatal(err)
		}
	}
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
	built, err := newFuzzBuilds()
	if err != nil {
		t.Fatal(err)
	}
	defer built.remove()
	built.cache = t.TempDir()
	want := map[string]string{ // what is said, or the error
		"FuzzGood":         "2 seeds, fuzz: elapsed: ",
		"FuzzEmpty":        "the seed corpus is empty",
		"FuzzBadSeed":      "run the seeds: exit status 1",
		"FuzzFinds":        "Failing input written to ",
		"FuzzDoesNotBuild": "undefined: testing",
	}
	for _, target := range targets {
		said, err := target.run(built, time.Second)
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
