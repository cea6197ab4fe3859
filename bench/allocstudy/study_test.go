package allocstudy

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/bench/internal/measure"
)

// TestStudyHolds runs the whole study, briefly, with the toolchain at hand:
// every count as stated.
func TestStudyHolds(t *testing.T) {
	r := &Results{Results: *measure.NewResults(Kind, 1)}
	if err := r.Run(io.Discard, t.TempDir(), []string{Today}, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if len(r.Counts) != len(Cases()) || len(r.Samples) < len(Cases()) {
		t.Errorf("%d counts and %d samples of %d cases", len(r.Counts), len(r.Samples), len(Cases()))
	}
}

// TestCheckNotices: a check that takes every count would be worth nothing.
func TestCheckNotices(t *testing.T) {
	c, go117, go122 := byName("pooled/33"), Toolchain{Name: "go1.17", Minor: 17}, Toolchain{Name: "go1.22", Minor: 22}
	for _, try := range []struct {
		t      Toolchain
		allocs float64
		good   bool
	}{{go117, 1, true}, {go117, 0, false}, {go117, 2, false}, {go122, 0, true}, {go122, 1, false}} {
		if err := c.check(try.t, try.allocs); (err == nil) != try.good {
			t.Errorf("%v allocations with %s: %v", try.allocs, try.t.Name, err)
		}
	}
	load := byName("zone/load")
	if load.check(go122, 13) != nil || load.check(go122, 3) == nil {
		t.Error("at least 8 is not checked as that")
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

// byName returns the case with this name; it must exist.
func byName(name string) Case {
	for _, c := range Cases() {
		if c.Name == name {
			return c
		}
	}
	panic("no case is named " + name)
}
