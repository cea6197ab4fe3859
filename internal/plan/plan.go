// Package plan is a capacity planner for slab.Writer: how many slabs of what
// size a workload takes, and what given slabs do for it. docs/PLANNING.md
// explains the figures.
package plan

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/rollway/rollway/slab"
)

// Workload describes the lines that arrive, the destination, and how long it may
// stall. Sizes are bytes and count the newline.
type Workload struct {
	// Rate is the number of lines a second at the busiest time: more than 0, up to 1e9.
	Rate float64 `json:"rate_lines_per_second"`
	// LineSize is the mean size of a line: 1 to 1<<30.
	LineSize int `json:"line_bytes"`
	// LineSizeP99 is the 99th percentile of the sizes: LineSize to 1<<30, default
	// 4 × LineSize. The planner takes it for the longest line. If it equals LineSize,
	// all lines have that size.
	LineSizeP99 int `json:"line_p99_bytes"`
	// WriteLatency is how long one Write of the destination takes while it does not
	// stall: more than 0, up to 1 h.
	WriteLatency time.Duration `json:"write_latency_ns"`
	// Spike is the longest stall that must not delay a producer: 0 to 24 h. No Write
	// makes progress during it; one under way takes that much longer.
	Spike time.Duration `json:"spike_ns"`
	// MemoryBudget bounds the memory of all slabs together: 0 (default) for no bound,
	// else 256 or more.
	MemoryBudget int `json:"memory_budget_bytes"`
}

// Limit says what a Capacity lacks.
type Limit string

const (
	// LimitNone: the workload is met.
	LimitNone Limit = "none"
	// LimitThroughput: the destination is slower than the lines arrive, even without
	// a stall. Producers wait, or lines are dropped.
	LimitThroughput Limit = "throughput"
	// LimitSpike: the guaranteed stall is shorter than Workload.Spike.
	LimitSpike Limit = "spike"
)

// Capacity says what slabs of one size and number do for a Workload. It is valid
// while
//
//   - no more than Rate × LineSize × t + LineSizeP99 bytes arrive in any time t
//     (Rate is the peak, not the daily mean),
//   - no line is longer than LineSizeP99, and no Write of the destination takes
//     longer than WriteLatency except during the stall,
//   - a stall begins no sooner than Recovery after the previous one.
//
// Except under slab.Block, the slabs reserved for important lines are not available
// to the others. A Flush or a Sync during a stall takes a slab that is not full yet.
type Capacity struct {
	Workload Workload `json:"workload"` // as planned for, with LineSizeP99 set

	SlabSize  int `json:"slab_size_bytes"`
	SlabCount int `json:"slab_count"`
	Memory    int `json:"memory_bytes"` // SlabSize × SlabCount

	// Guaranteed is the longest stall that never delays a producer. BestCase is the
	// longest that may go unnoticed, starting with empty slabs and with lines that
	// fill each slab to its last byte.
	Guaranteed time.Duration `json:"guaranteed_ns"`
	BestCase   time.Duration `json:"best_case_ns"`

	Demand     float64 `json:"demand_bytes_per_second"`     // Rate × LineSize
	Throughput float64 `json:"throughput_bytes_per_second"` // guaranteed by the destination

	// Recovery is the time from the end of a stall of length Spike (or Guaranteed,
	// if that is shorter) until the slabs absorb the next one. It is 0 if Limit is
	// LimitThroughput: the backlog never clears.
	Recovery time.Duration `json:"recovery_ns"`

	Met    bool  `json:"met"` // Limit is LimitNone
	Limit  Limit `json:"limit"`
	Needed int   `json:"needed_bytes"` // slabs that Choose takes without a budget; 0: no Writer is large enough
}

// Bounds of what Choose chooses. With slabs of 64 KiB the cost of a call is small
// next to that of its bytes; smaller ones are for tight budgets. Four slabs are the
// fewest with a reserve under Drop.
const (
	planSlabSize  = 64 << 10 // also the default of slab.Options
	planSlabCount = 4
	minSlabSize   = 64
	maxSlabSize   = 1 << 30
	maxSlabCount  = 1 << 16

	// maxTotal bounds the memory of all slabs: 16 GiB, or 1 GiB with 32-bit ints.
	maxTotal = 1 << (30 + 4*(^uint(0)>>63))

	// defaultCount is that of slab.Options.
	defaultCount = 8
	// polling is the number of slabs from which a Writer polls for sealed slabs.
	polling = 8
)

// Choose chooses the size and the number of slabs for w. Without a budget it takes
// slabs of 64 KiB, or the next power of two that keeps the destination busy for no
// more than half of the time and wastes no more than an eighth of a slab at its end,
// and as many as guarantee w.Spike. If they exceed the budget it takes the largest
// smaller slabs that fit. If none fit, it takes those that guarantee the longest
// stall; Capacity.Limit, Err and Needed then say what is missing.
//
// An error names the field of w that is out of range. The result is the same on
// every architecture.
func Choose(w Workload) (Capacity, error) {
	w, err := w.withDefaults()
	if err != nil {
		return Capacity{}, err
	}
	f := w.flow()
	size, count, _ := f.choose(min(cmp.Or(w.MemoryBudget, maxTotal), maxTotal))
	return f.capacity(w, size, count), nil
}

// Evaluate returns what count slabs of size bytes do for w; 0 is the default of
// slab.Options. An error names what is out of range.
func Evaluate(w Workload, size, count int) (Capacity, error) {
	w, err := w.withDefaults()
	if err != nil {
		return Capacity{}, err
	}
	size, count = cmp.Or(size, planSlabSize), cmp.Or(count, defaultCount)
	switch {
	case size < minSlabSize || size > maxSlabSize:
		return Capacity{}, fmt.Errorf("SlabSize is %d, allowed is 64 to 1073741824 bytes", size)
	case count < 2 || count > maxSlabCount:
		return Capacity{}, fmt.Errorf("SlabCount is %d, allowed is 2 to 65536", count)
	case int64(size)*int64(count) > maxTotal:
		return Capacity{}, fmt.Errorf("SlabSize × SlabCount is %d, allowed is up to %d bytes", int64(size)*int64(count), int64(maxTotal))
	}
	return w.flow().capacity(w, size, count), nil
}

// Headroom is Throughput ÷ Demand. Below 1 the destination cannot keep up; at 2 it
// recovers from a stall in about the stall's length.
func (c Capacity) Headroom() float64 { return c.Throughput / c.Demand }

// Err returns nil if the workload is met. Otherwise the error says what the slabs do
// instead and what it takes.
func (c Capacity) Err() error {
	if c.Limit == LimitNone {
		return nil
	}
	slabs := fmt.Sprintf("%d slabs of %s", c.SlabCount, sizeText(c.SlabSize))
	takes := fmt.Sprintf("that takes %s", sizeText(c.Needed))
	if c.Limit == LimitThroughput {
		if c.Needed == 0 {
			takes = "no slab is large enough for that, it takes a faster destination or several of them"
		}
		return fmt.Errorf("with %s the destination is sure to take %.3g MB/s at %v a write, but %.3g MB/s come: %s",
			slabs, c.Throughput/1e6, c.Workload.WriteLatency, c.Demand/1e6, takes)
	}
	if c.Needed == 0 {
		takes = "that is more than a Writer can have"
	}
	return fmt.Errorf("%s are sure to outlast a stall of %v, not of %v: %s",
		slabs, roundDown(c.Guaranteed), c.Workload.Spike, takes)
}

// withDefaults returns w with LineSizeP99 filled in, or an error that names the
// first field out of range.
func (w Workload) withDefaults() (Workload, error) {
	bad := func(name string, value any, allowed string) (Workload, error) {
		return Workload{}, fmt.Errorf("%s is %v, allowed is %s", name, value, allowed)
	}
	if w.LineSizeP99 == 0 && w.LineSize > 0 {
		w.LineSizeP99 = max(w.LineSize, min(w.LineSize, maxSlabSize/4)*4)
	}
	switch {
	case !(w.Rate > 0 && w.Rate <= 1e9):
		return bad("Rate", w.Rate, "more than 0, up to 1e9 lines a second")
	case w.LineSize < 1 || w.LineSize > maxSlabSize:
		return bad("LineSize", w.LineSize, "1 to 1073741824 bytes")
	case w.LineSizeP99 < w.LineSize || w.LineSizeP99 > maxSlabSize:
		return bad("LineSizeP99", w.LineSizeP99, fmt.Sprintf("%d (LineSize) to 1073741824 bytes", w.LineSize))
	case w.WriteLatency <= 0 || w.WriteLatency > time.Hour:
		return bad("WriteLatency", w.WriteLatency, "more than 0, up to 1h")
	case w.Spike < 0 || w.Spike > 24*time.Hour:
		return bad("Spike", w.Spike, "0 to 24h")
	case w.MemoryBudget != 0 && w.MemoryBudget < planSlabCount*minSlabSize:
		return bad("MemoryBudget", w.MemoryBudget, fmt.Sprintf("0 (none) or at least %d bytes", planSlabCount*minSlabSize))
	}
	return w, nil
}

// sizeText writes n bytes in the largest binary unit that leaves no rest.
func sizeText(n int) string {
	for _, u := range []struct {
		shift int
		name  string
	}{{30, "GiB"}, {20, "MiB"}, {10, "KiB"}} {
		if n > 0 && n%(1<<u.shift) == 0 {
			return fmt.Sprintf("%d %s", n>>u.shift, u.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

// roundDown keeps three figures of d, as a promise is never rounded up.
func roundDown(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Truncate(unit)
}

// duration turns seconds into a Duration, rounded down.
func duration(seconds float64) time.Duration {
	ns := math.Floor(seconds * 1e9)
	switch {
	case !(ns > 0):
		return 0
	case ns >= math.MaxInt64:
		return math.MaxInt64
	}
	return time.Duration(ns)
}

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
