package allocstudy

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/bench/internal/report"
)

// TestStudyHolds runs the whole study, briefly, with the toolchain at hand:
// every count as stated, tables made of what was saved.
func TestStudyHolds(t *testing.T) {
	r := &Results{Results: *measure.NewResults(Kind, 1)}
	if err := r.Run(io.Discard, t.TempDir(), []string{Today}, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "sub", "allocstudy.json")
	if err := measure.Save(path, r); err != nil {
		t.Fatal(err)
	}
	back, err := measure.Load[Results](path, Kind)
	if err != nil || !reflect.DeepEqual(back, r) {
		t.Fatalf("read back %+v, %v, want %+v", back, err, r)
	}
	tables := func() (string, error) { return report.Make(func() string { return Tables(back) }) }
	text, err := tables()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| `plain.Info` | `([]byte)(msg)` | heap |",
		"| `plain.Info` | `&event{...}` | stack |",
		"| `plain.newEvent` | `&event{...}` | heap |",
		"| `pooled.Info` | `([]byte)(msg)` | no copy |",
		"| `closure.Literal` | `func literal` | heap |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the tables have no line %s", want)
		}
	}
	back.Counts = back.Counts[1:]
	if _, err := tables(); err == nil {
		t.Error("tables were made of results that lack a case")
	}
}

// TestConclusions compares the verdicts with the conclusions in docs/BENCHMARKS.md, for each toolchain of the published results: they follow
// from the counts that the study states, whatever runs here.
func TestConclusions(t *testing.T) {
	never := "[]"
	holds := map[string]string{
		"an event without a pool costs 1 allocation of 8 bytes":                          "[13 17 22 26]",
		"that allocation is the event, which newEvent puts on the heap":                  never,
		"with a pool it is 0 allocations":                                                "[13 17 22 26]",
		"messages within 500 bytes are written without a new allocation":                 "[22 26]",
		"a message over the capacity is a new allocation":                                never,
		"what the pool's New allocates is almost zero per call":                          "[13 17 22 26]",
		"an event behind an interface, over the pool, allocates nothing":                 "[13 17 22 26]",
		"using an interface allocates nothing in itself":                                 never,
		"an interface without a pool allocates more than the event alone":                "[13]",
		"a function literal per call allocates, as `func literal escapes to heap` shows": never,
		"a struct in the pool must have no pointer field":                                never,
		"making a slice allocates":                                                       never,
		"an append beyond the capacity allocates":                                        "[13 17 22]",
		"assigning a slice to a second slice variable allocates":                         never,
		"an array is better": never,
		"a pooled slice cut to length 0 and appended to allocates nothing":   "[13 17 22 26]",
		"LoadLocation(\"UTC\") and LoadLocation(\"Local\") allocate nothing": "[13 17 22 26]",
		"LoadLocation of another zone allocates, loaded once it does not":    "[13 17 22 26]",
		"AppendFormat with room enough allocates nothing":                    "[13 17 22 26]",
	}
	bytes := map[string]float64{"plain/const": 8}
	for _, c := range Claims() {
		got := []int{}
		for _, minor := range []int{13, 17, 22, 26} {
			if c.Holds(func(name string) Count {
				return Count{Allocs: byName(name).want(minor), Bytes: bytes[name]}
			}) {
				got = append(got, minor)
			}
		}
		want, ok := holds[c.Says]
		if !ok || want != fmt.Sprint(got) {
			t.Errorf("%q holds with Go 1.%v, want %s", c.Says, got, want)
		}
	}
	if len(holds) != len(Claims()) {
		t.Errorf("%d claims, %d conclusions", len(Claims()), len(holds))
	}
}

// TestCheckNotices: a check that takes every count would be worth nothing.
func TestCheckNotices(t *testing.T) {
	c, go117, go122 := byName("pooled/33"), Toolchain{Name: "go1.17", Minor: 17}, Toolchain{Name: "go1.22", Minor: 22}
	for _, try := range []struct {
		t      Toolchain
		allocs float64
		good   bool
	}{{go117, 1, true}, {go117, 1.001, true}, {go117, 0, false}, {go117, 2, false}, {go122, 0, true}, {go122, 0.5, false}} {
		if err := c.check(try.t, try.allocs); (err == nil) != try.good {
			t.Errorf("%v allocations with %s: %v", try.allocs, try.t.Name, err)
		}
	}
	load := byName("zone/load")
	if load.check(go122, 13) != nil || load.check(go122, 3) == nil {
		t.Error("at least 8 is not checked as that")
	}
}

func TestParseEscapes(t *testing.T) {
	source, err := os.ReadFile("testdata/compiler.txt")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	found, err := parseEscapes("go1.x", source)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range found {
		got = append(got, e.Func+" "+e.What+": "+e.Verdict)
	}
	want := []string{
		"plain.newEvent &event{...}: heap",
		"plain.Info ([]byte)(msg): heap",
		"plain.Info &event{...}: stack",
		"pooled.Info ([]byte)(msg): stack",
		"pooled.Info ([]byte)(msg): no copy",
		"closure.Literal func literal: heap",
		"slices.ArrayWrite a: heap",
		"iface.newEmitter newEvent(text, level, after): heap",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if _, err := parseEscapes("go1.x", []byte("# allocstudy\n")); err == nil {
		t.Error("a compiler that says nothing was taken")
	}
}

func TestMinor(t *testing.T) {
	for version, want := range map[string]int{"go1.17.13": 17, "go1.22": 22, "go1.27rc1": 27, "go1.26.8-X:nocoverageredesign": 26} {
		if got, err := minor(version); err != nil || got != want {
			t.Errorf("minor(%q) = %d, %v", version, got, err)
		}
	}
	for _, version := range []string{"devel", "go2.1", "go1."} {
		if _, err := minor(version); err == nil {
			t.Errorf("minor(%q) gave no error", version)
		}
	}
}

func TestUnknownToolchain(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	if _, err := NewToolchain("go1.99.99"); err == nil || !strings.Contains(err.Error(), "go1.99.99") {
		t.Errorf("a toolchain that does not exist: %v", err)
	}
}
