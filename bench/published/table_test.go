package published

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rollway/rollway/bench/ingest"
	"github.com/rollway/rollway/bench/internal/report"
)

// TestTable: the results that the repository has give every claim a row, and the
// reason that belongs to it.
func TestTable(t *testing.T) {
	made, err := Report("../../docs/results")
	text := made.Text
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range publications() {
		if got := strings.Count(text, "\n| "+p.name+" |"); got != len(p.claims) || got == 0 {
			t.Errorf("%s has %d rows, want %d", p.name, got, len(p.claims))
		}
	}
	if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") || strings.Contains(text, "<nil>") {
		t.Error("a figure is none")
	}
}

// TestMissing: a claim whose samples are not there is an error and no figure.
func TestMissing(t *testing.T) {
	if _, err := Report(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without results: %v", err)
	}
	empty := &results{writers: report.FiguresOf(), requests: report.FiguresOf(), in: new(ingest.Results)}
	for _, c := range append(bufferingClaims()[:1], ingestionClaims()...) {
		if _, _, err := c.read(empty); err == nil || !strings.Contains(err.Error(), "measure again") {
			t.Errorf("%s: %v", c.says, err)
		}
	}
}

// TestTurned: a reason is not given for a direction that it is not of.
func TestTurned(t *testing.T) {
	for _, c := range []struct {
		expect direction
		same   bool
		want   string
	}{{holds, true, "because"}, {fails, false, "because"}, {either, true, "because"}, {either, false, "because"}, {holds, false, unexplained}, {fails, true, unexplained}} {
		if got := (claim{expect: c.expect, why: "because"}).reason(c.same); got != c.want {
			t.Errorf("expect %d, found %t: %q, want %q", c.expect, c.same, got, c.want)
		}
	}
}

// TestCells: no cell of a table in the documents is too long to read.
func TestCells(t *testing.T) {
	for _, name := range []string{"BENCHMARKS.md", "PUBLISHED.md", "RELAY.md", "RELIABILITY.md"} {
		text, err := os.ReadFile("../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(line, "|") {
				continue
			}
			for cell := range strings.SplitSeq(line, " | ") {
				if n := utf8.RuneCountInString(cell); n > 200 {
					t.Errorf("%s: a cell of %d characters: %.80s", name, n, cell)
				}
			}
		}
	}
}

// TestFront: each of the ten figures has a row, a rival and bars.
func TestFront(t *testing.T) {
	made, err := Front("../../docs/results")
	if err != nil {
		t.Fatal(err)
	}
	picture := made.Pictures[frontPicture]
	if rows := strings.Count(made.Text, "[`make bench-"); rows != 10 || strings.Count(picture, "Rollway</text>") != 10 || strings.Contains(made.Text, "NaN") {
		t.Errorf("%d figures in\n%s\n%s", rows, made.Text, picture)
	}
	if _, err := Front(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without results: %v", err)
	}
}
