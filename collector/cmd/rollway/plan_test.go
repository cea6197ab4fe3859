package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite what is generated in the documents")

// checkManual runs each command of a page, the lines in its blocks of console that
// begin with a dollar, and compares the output with the page; -update writes it.
func checkManual(t *testing.T, page string, least int, run func(command, want string) string) {
	t.Helper()
	page, err := filepath.Abs(page)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	commands, inside := 0, false
	lines := strings.SplitAfter(string(text), "\n")
	for i := 0; i < len(lines); i++ {
		line, want := lines[i], ""
		out.WriteString(line)
		inside = line == "```console\n" || inside && line != "```\n"
		command, is := strings.CutPrefix(line, "$ ")
		if !inside || !is {
			continue
		}
		for commands++; i+1 < len(lines) && lines[i+1] != "```\n" && !strings.HasPrefix(lines[i+1], "$ "); i++ {
			want += lines[i+1]
		}
		got := run(strings.TrimSuffix(command, "\n"), want)
		if got != want && !*update {
			t.Errorf("%s\ngot\n%swant (this test with -update writes it)\n%s", command, got, want)
		}
		out.WriteString(got)
	}
	if commands < least || inside {
		t.Fatalf("%d commands found", commands)
	}
	if *update {
		writeFile(t, page, out.String())
	}
}

// TestPlanningManual runs the examples in testdata/vars.
func TestPlanningManual(t *testing.T) {
	manual, err := filepath.Abs("../../../docs/PLANNING.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir("testdata/vars")
	checkManual(t, manual, 4, func(command, _ string) string {
		r := cli(t, "", strings.Fields(command)[1:]...)
		return r.stdout + r.stderr
	})
}

func TestPlanUsage(t *testing.T) {
	const enough = "plan -rate 1000 -line 100 -write-latency 1ms"
	for args, want := range map[string]string{
		"plan":                      "-rate is missing",
		"plan -rate 1000":           "-line is missing",
		"plan -rate 1000 -line 100": "-write-latency is missing",
		"plan -rate x":              `invalid value "x" for flag -rate`,
		"plan -line 100megs":        `"100megs" is not a size`,
		"plan -rate -1 -line 100 -write-latency 1s": "Rate is -1, allowed is more than 0",
		enough + " -line-p99 99":                    "LineSizeP99 is 99, allowed is 100 (LineSize) to",
		enough + " -memory 1":                       "MemoryBudget is 1, allowed is 0 (none) or at least 256",
		enough + " -slabs 1":                        "SlabCount is 1, allowed is 2 to 65536",
		enough + " -slabs 4 -memory 1MiB":           "-memory bounds the choice of slabs",
		enough + " -name slab":                      "-name is for -from",
		enough + " -interval 1s":                    "-interval is for -from",
		"plan -from a -interval 0s":                 "-interval is 0s, allowed is more than 0, up to 1h",
		"plan -from a -from b -from c":              "-from was given 3 times",
		"plan -from ftp://127.0.0.1/vars":           "is not the address of a page: write it as in http://127.0.0.1:6060/debug/vars",
		"plan -from http:///debug/vars":             "is not the address of a page",
		enough + " file":                            `unexpected argument "file"`,
	} {
		r := cli(t, "", strings.Fields(args)...)
		if r.code != exitUsage || !strings.Contains(r.stderr, want) || r.stdout != "" {
			t.Errorf("rollway %s: status %d, stderr %q, want 2 and %q\n%s", args, r.code, r.stderr, want, r.stdout)
		}
	}
}

func TestRates(t *testing.T) {
	for _, tt := range []struct {
		rate         float64
		lines, bytes string
	}{
		{0.5, "0.5 lines/s", "0.5 B/s"},
		{999.4, "999 lines/s", "999 B/s"},
		{999.6, "1,000 lines/s", "999 B/s"},
		{1000, "1,000 lines/s", "1.0 KB/s"},
	} {
		if lines, bytes := perSecond(tt.rate, "lines"), megabytes(tt.rate); lines != tt.lines || bytes != tt.bytes {
			t.Errorf("%v: %s, %s", tt.rate, lines, bytes)
		}
	}
}
