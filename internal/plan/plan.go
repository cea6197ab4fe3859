// Package plan is a capacity planner for slab.Writer: how many slabs of which
// size a workload takes, and what given slabs do for it. docs/PLANNING.md
// explains the figures.
package plan

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

// Workload describes the lines that come, the destination they go to, and how
// long it may stall. Sizes are bytes with the newline.
type Workload struct {
	// Rate is how many lines come in a second, at the busiest time that is
	// planned for: more than 0, up to 1e9.
	Rate float64
	// LineSize is the mean size of a line in bytes: 1 to 1<<30.
	LineSize int
	// LineSizeP99 is the 99th percentile of the sizes in bytes: LineSize to
	// 1<<30, default 4 × LineSize. It is taken for the longest line: a longer
	// one can cost more room at the end of its slab than was planned. Equal to
	// LineSize it says that all lines have that size.
	LineSizeP99 int
	// WriteLatency is how long one Write of the destination takes while it does
	// not stall: more than 0, up to 1 h.
	WriteLatency time.Duration
	// Spike is the longest stall that must not make a producer wait: 0 to 24 h.
	// For its length no Write makes progress; one that is under way takes that
	// much longer.
	Spike time.Duration
	// MemoryBudget bounds the memory of all slabs together in bytes: 0 (default)
	// is no bound, else 256 or more.
	MemoryBudget int
}

// Limit says what a Capacity lacks.
type Limit int

const (
	// LimitNone: the workload is met.
	LimitNone Limit = iota
	// LimitThroughput: the destination takes less than the lines bring, also
	// when it does not stall. Producers will wait, or lines be dropped.
	LimitThroughput
	// LimitSpike: the guaranteed stall is shorter than Workload.Spike.
	LimitSpike
)

// String returns "none", "throughput" or "spike".
func (l Limit) String() string {
	if names := [...]string{"none", "throughput", "spike"}; 0 <= l && int(l) < len(names) {
		return names[l]
	}
	return fmt.Sprintf("Limit(%d)", int(l))
}

// Capacity is what slabs of one size and number do for a Workload. It holds
// while
//
//   - the lines bring no more than Rate × LineSize × t + LineSizeP99 bytes in
//     any time t (Rate is the peak, not the mean of the day),
//   - no line is longer than LineSizeP99, and no Write of the destination takes
//     longer than WriteLatency but for the stall,
//   - a stall comes no sooner than Recovery after the one before.
//
// Except under slab.Block, the slabs that are reserved for important lines are not
// there for the others. A Flush or a Sync during a stall takes a slab that is not
// full yet.
type Capacity struct {
	Workload Workload // as planned for, LineSizeP99 filled in

	SlabSize  int // bytes
	SlabCount int
	Memory    int // bytes, SlabSize × SlabCount

	// Guaranteed is the stall that no producer notices at whatever moment it
	// begins, BestCase the one that no producer can fail to notice if it is any
	// longer: it takes a Writer that is empty when the stall begins, and lines
	// that fill each slab to the last byte.
	Guaranteed time.Duration
	BestCase   time.Duration

	Demand     float64 // bytes a second that come: Rate × LineSize
	Throughput float64 // bytes a second that the destination is sure to take

	// Recovery is the time from the end of a stall as long as Spike (or
	// Guaranteed, if that is shorter) until the next one is survived as well. 0
	// if Limit is LimitThroughput: it never comes.
	Recovery time.Duration

	Limit  Limit
	Needed int // bytes of slabs that Choose takes without a budget; 0: no Writer is large enough
}

// The bounds of what Choose chooses by itself. Slabs of 64 KiB make the cost of
// a call small next to that of its bytes; smaller ones are for tight budgets.
// Four slabs are the fewest with a reserve under Drop.
const (
	planSlabSize  = 64 << 10 // also the default of slab.Options
	planSlabCount = 4
	minSlabSize   = 64
	maxSlabSize   = 1 << 30
	maxSlabCount  = 1 << 16

	// maxTotal is the most memory that slabs may take together: 16 GiB, or 1 GiB
	// where an int has 32 bits.
	maxTotal = 1 << (30 + 4*(^uint(0)>>63))

	// defaultCount is that of slab.Options.
	defaultCount = 8
	// lookers is the fewest slabs of a Writer that looks for sealed slabs by itself.
	lookers = 8
)

// Choose chooses the size and the number of slabs for w. Without a budget it
// takes slabs of 64 KiB, or the next power of two with which the destination
// needs no more than half of its time and no more than an eighth of a slab is
// lost at its end, and as many as guarantee w.Spike. If they do not fit into
// the budget it takes the largest smaller slabs that do, and if none do, those
// that guarantee the longest stall; Capacity.Limit, Err and Needed then say
// what is missing.
//
// An error names the field of w that is out of range. The same w gives the
// same result everywhere.
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

// Headroom is Throughput divided by Demand: below 1 the destination cannot
// keep up, and at 2 it recovers from a stall in about the stall's length.
func (c Capacity) Headroom() float64 { return c.Throughput / c.Demand }

// Err returns nil if the workload is met, or else an error that says what the
// slabs do instead and what it would take.
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
