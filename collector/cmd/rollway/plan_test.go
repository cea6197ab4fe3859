package main

import (
	"bufio"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite what is generated in the documents")

// TestPlanningManual runs each example of the manual in testdata/vars, prints
// the published tables, and compares both with what stands there; -update
// writes it.
func TestPlanningManual(t *testing.T) {
	planningManual, err := filepath.Abs("../../../docs/PLANNING.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir("testdata/vars")
	text, err := os.ReadFile(planningManual)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- published: begin -->\n", "<!-- published: end -->\n"
	var out strings.Builder
	examples, tables := 0, 0
	inside, generated := false, false
	in := bufio.NewScanner(strings.NewReader(string(text)))
	for in.Scan() {
		line := in.Text() + "\n"
		switch {
		case line == "```console\n":
			inside = true
		case line == "```\n":
			inside = false
		case inside && strings.HasPrefix(line, "$ rollway "):
			examples++
			out.WriteString(line)
			r := cli(t, "", strings.Fields(line)[2:]...)
			out.WriteString(r.stdout + r.stderr)
			continue
		case line == end:
			generated = false
		case inside || generated:
			continue
		}
		out.WriteString(line)
		if line == begin {
			generated = true
			tables++
			r := cli(t, "", "plan", "-published")
			r.want(t, exitOK)
			out.WriteString("\n" + r.stdout + "\n")
		}
	}
	if examples < 4 || tables != 1 || inside || generated {
		t.Fatalf("%d examples and %d places for the tables found", examples, tables)
	}
	if *update {
		if err := os.WriteFile(planningManual, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if out.String() != string(text) {
		t.Errorf("%s is not what the program prints; run this test with -update\n%s", planningManual, out.String())
	}
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
		enough + " -slabs 1":                        "option SlabCount is 1, allowed is 2 to 65536",
		enough + " -slabs 4 -memory 1MiB":           "-memory is for choosing slabs",
		enough + " -name slab":                      "-name is for -from",
		enough + " -interval 1s":                    "-interval is for -from",
		"plan -from a -interval 0s":                 "-interval is 0s, allowed is more than 0, up to 1h",
		"plan -from a -from b -from c":              "-from was given 3 times",
		"plan -from ftp://127.0.0.1/vars":           "is not the address of a page: write it as in http://127.0.0.1:6060/debug/vars",
		"plan -from http:///debug/vars":             "is not the address of a page",
		enough + " -published":                      "-published goes alone",
		enough + " file":                            `unexpected argument "file"`,
	} {
		r := cli(t, "", strings.Fields(args)...)
		if r.code != exitUsage || !strings.Contains(r.stderr, want) || r.stdout != "" {
			t.Errorf("rollway %s: status %d, stderr %q, want 2 and %q\n%s", args, r.code, r.stderr, want, r.stdout)
		}
	}
}

// TestPublishedTables wants the figures that were published in each row, and
// none that is guaranteed to be as long.
func TestPublishedTables(t *testing.T) {
	text := publishedTables()
	for _, row := range []string{
		"| 10,000 | 256 B | 1ms | 2.5 KB | 2,560 B |",
		"| 10,000 | 256 B | 10ms | 25 KB | 25,600 B |",
		"| 100,000 | 200 B | 10ms | 200 KB | 200,000 B |",
		"| 10,000 | 256 B | 64KiB | 50ms | 2 | 2 | 4 | 0s | 51.2ms |",
		"| 10,000 | 256 B | 64KiB | 200ms | 1 + 8 = 8 | 8 | 11 | 128ms | 204ms |",
		"| 50,000 | 256 B | 64KiB | 100ms | 20 | 20 | 23 | 87ms | 102ms |",
		"| 100,000 | 200 B | 256KiB | 100ms | 8 | 8 | 11 | 65.5ms | 104ms |",
		"| 8 × 64KiB | 512KiB | 200 ms | 204ms | 128ms | 25.6ms | 40 ms | 40.9ms | 25.6ms | 5.12ms |",
		"| 16 × 16KiB | 256KiB | 100 ms | 102ms | 83.2ms | 6.4ms | 20 ms | 20.4ms | 16.6ms | 1.28ms |",
		"| 16 × 64KiB | 1MiB | 400 ms | 409ms | 332ms | 25.6ms | 80 ms | 81.9ms | 66.5ms | 5.12ms |",
		"| 4 × 16KiB | 64KiB | 25 ms | 25.6ms | 12.8ms | 6.4ms | 5 ms | 5.12ms | 2.56ms | 1.28ms |",
		"| Local file, moderate rate | 8 × 64KiB | 512KiB |",
		"| Network (Kibana), high rate | 16 × 64KiB | 1MiB |",
		"| Low-memory sidecar (network) | 4 × 16KiB | 64KiB |",
		"| High-throughput pipeline (network) | 8 × 256KiB | 2MiB |",
	} {
		if !strings.Contains(text, row) {
			t.Errorf("the tables lack %q", row)
		}
	}
	if n := strings.Count(text, "falls behind |"); n != 2 {
		t.Errorf("%d scenarios fall behind, want 2", n)
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
