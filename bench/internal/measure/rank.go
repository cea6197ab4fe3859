package measure

import (
	"math"
	"slices"
)

// RankTest compares two samples by the test of Mann and Whitney. greater is the
// probability that one of a's values is greater than one of b's, ties half; p is
// that of a difference as large as this, or larger, in either direction where
// both are of one distribution. p is of the normal approximation, corrected for
// ties, which takes at least eight values on either side: it is 1 for less.
func RankTest(a, b []float64) (greater, p float64) {
	n, m := float64(len(a)), float64(len(b))
	if n == 0 || m == 0 {
		return math.NaN(), 1
	}
	u := 0.0
	for _, x := range a {
		for _, y := range b {
			switch {
			case x > y:
				u++
			case x == y:
				u += 0.5
			}
		}
	}
	greater, p = u/(n*m), 1
	if min(n, m) < 8 {
		return greater, p
	}
	all := slices.Sorted(slices.Values(slices.Concat(a, b)))
	ties := 0.0
	for i := 0; i < len(all); {
		j := i
		for j < len(all) && all[j] == all[i] {
			j++
		}
		t := float64(j - i)
		ties += t*t*t - t
		i = j
	}
	sum := n + m
	variance := n * m / 12 * (sum + 1 - ties/(sum*(sum-1)))
	if variance > 0 {
		p = math.Erfc(math.Abs(u-n*m/2) / math.Sqrt(2*variance))
	}
	return greater, p
}
