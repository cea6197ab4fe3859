package measure

import (
	"math"
	"testing"
)

// The values of p are those of scipy.stats.mannwhitneyu with
// method="asymptotic" and use_continuity=False.
func TestRankTest(t *testing.T) {
	low := []float64{1, 2, 3, 4, 5, 6, 7, 8}
	high := []float64{11, 12, 13, 14, 15, 16, 17, 18}
	mixed := []float64{1, 1, 3, 4, 5, 9, 9, 10}
	for _, c := range []struct {
		name       string
		a, b       []float64
		greater, p float64
	}{
		{"apart", high, low, 1, 0.0007775304469403846},
		{"apart, the other way", low, high, 0, 0.0007775304469403846},
		{"with itself", low, low, 0.5, 1},
		{"ties", mixed, low, 0.5546875, 0.711565057449479},
		{"all the same", []float64{1, 1, 1, 1, 1, 1, 1, 1}, []float64{1, 1, 1, 1, 1, 1, 1, 1}, 0.5, 1},
		{"too few", high[:7], low, 1, 1},
	} {
		if greater, p := RankTest(c.a, c.b); math.Abs(greater-c.greater) > 1e-12 || math.Abs(p-c.p) > 1e-9 {
			t.Errorf("%s: %v, p %v, want %v, p %v", c.name, greater, p, c.greater, c.p)
		}
	}
	if greater, p := RankTest(nil, low); !math.IsNaN(greater) || p != 1 {
		t.Errorf("of nothing: %v, p %v", greater, p)
	}
}
