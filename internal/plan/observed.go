package plan

import (
	"fmt"
	"time"

	"github.com/rollway/rollway/slab"
)

// Observed returns the workload that a running Writer had between two calls of
// its Stats, elapsed apart:
//
//   - Rate and LineSize are means over that time; dropped lines count, as they
//     came. Take the Stats at the busiest time.
//   - LineSizeP99 is the longest line since New, as far as Stats.LineMax knows
//     it.
//   - WriteLatency is the mean over that time, or since New if no Write has
//     returned in between. Stalls are in it.
//   - Spike is the longest Write since New.
//   - MemoryBudget is 0.
//
// It is an error if no line came, if no Write has ever returned, or if before
// is not from the same Writer.
func Observed(before, after slab.Stats, elapsed time.Duration) (Workload, error) {
	fail := func(format string, args ...any) (Workload, error) {
		return Workload{}, fmt.Errorf(format, args...)
	}
	switch {
	case elapsed <= 0:
		return fail("the time between the two Stats is %v, it must be more than 0", elapsed)
	case after.Accepted < before.Accepted, after.BytesAccepted < before.BytesAccepted, after.Writes < before.Writes, after.WriteTime < before.WriteTime:
		return fail("the counters went back, from %d lines to %d: these are two Writers, or the process was started anew in between", before.Accepted, after.Accepted)
	case after.Accepted == before.Accepted:
		return fail("no line came in %v", elapsed)
	case after.Writes == 0:
		return fail("no Write of the destination has returned yet")
	}
	lines := after.Accepted - before.Accepted
	size := (after.BytesAccepted - before.BytesAccepted + lines - 1) / lines
	writes, writing := after.Writes-before.Writes, after.WriteTime-before.WriteTime
	if writes == 0 {
		writes, writing = after.Writes, after.WriteTime
	}
	w := Workload{
		Rate:         float64(lines) / elapsed.Seconds(),
		LineSize:     int(min(max(1, size), maxSlabSize)),
		WriteLatency: max(1, writing/time.Duration(writes)),
		Spike:        after.WriteMax,
	}
	w.LineSizeP99 = min(max(w.LineSize, after.LineMax), maxSlabSize)
	if w.LineSizeP99 == w.LineSize && after.BytesAccepted-before.BytesAccepted != lines*size {
		w.LineSizeP99++ // so that they do not pass for lines of one size
	}
	return w, nil
}
