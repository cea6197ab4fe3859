package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rollway/rollway/bench/internal/measure"
)

func TestReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "doc.md")
	write := func(s string) {
		if err := os.WriteFile(path, []byte(s), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("above\n<!-- x:begin -->\nold\n<!-- x:end -->\nbelow\n")
	for _, want := range []bool{true, false} {
		if changed, err := Replace(path, "x", "new\n"); err != nil || changed != want {
			t.Errorf("Replace = %v, %v, want %v", changed, err, want)
		}
	}
	if got, _ := os.ReadFile(path); string(got) != "above\n<!-- x:begin -->\nnew\n<!-- x:end -->\nbelow\n" {
		t.Errorf("the file is %q", got)
	}
	write("no markers\n")
	if _, err := Replace(path, "x", "new\n"); err == nil {
		t.Error("a file without markers was taken")
	}
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{0.471: "0.47", 4.615: "4.62", 47.66: "47.7", 1788.4: "1788"} {
		if got := Number(v); got != want {
			t.Errorf("Number(%v) = %s, want %s", v, got, want)
		}
	}
	for v, want := range map[float64]string{0: "0", 0.004: "0", 11: "11", 0.5: "0.50"} {
		if got := Count(v); got != want {
			t.Errorf("Count(%v) = %s, want %s", v, got, want)
		}
	}
}

func TestTables(t *testing.T) {
	grid := Grid("corner", []string{"a", "b"}, []string{"x", "y"}, func(row, column string) string { return row + column })
	if got, want := grid.Titled("**%d**", 1), "\n**1**\n\n| corner | x | y |\n|---|--:|--:|\n| a | ax | ay |\n| b | bx | by |\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	targets := NewTargets("ours")
	targets.Add("speed", "3", "≤ 2", false)
	if !strings.Contains(targets.String(), "| speed | 3 | ≤ 2 | **no** |") {
		t.Error(targets)
	}
}

// TestMissing: a figure that was not measured is an error, and no zero.
func TestMissing(t *testing.T) {
	f := FiguresOf(measure.Results{Samples: []measure.Sample{{Case: "c", Library: "l", Mode: "m", NsPerOp: 2, Extra: map[string]float64{"x": 3}}, {Case: "c", Library: "l", Mode: "m", Extra: map[string]float64{"x": 5}, Round: 1}}})
	if v, err := Make(func() float64 {
		return f.At("c", "l", "m").Ns + f.Worst("c", "l", "m", "x") + f.Total("c", "l", "m", "x")
	}); v != 1+5+8 || err != nil {
		t.Errorf("%v, %v", v, err)
	}
	for _, miss := range []func() float64{func() float64 { return f.At("c", "k", "m").Ns }, func() float64 { return f.Worst("d", "l", "m", "x") }} {
		if v, err := Make(miss); err == nil || !strings.Contains(err.Error(), "measure again") {
			t.Errorf("%v, %v", v, err)
		}
	}
}
