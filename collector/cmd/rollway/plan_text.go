package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/internal/plan"
)

// A sheet is a text of titled rows.
type sheet struct{ strings.Builder }

func (s *sheet) title(format string, args ...any) {
	if s.Len() > 0 {
		s.WriteByte('\n')
	}
	fmt.Fprintf(s, format+"\n", args...)
}

func (s *sheet) row(name, format string, args ...any) {
	fmt.Fprintf(s, "  %-16s %s\n", name, fmt.Sprintf(format, args...))
}

// planText shows p for people, with the options to paste.
func planText(p plan.Capacity) string {
	var s sheet
	s.title("workload")
	w := p.Workload
	s.row("rate", "%s, %s", perSecond(w.Rate, "lines"), megabytes(p.Demand))
	s.row("line", "%s B in the mean, %s B at the 99th percentile", count(w.LineSize), count(w.LineSizeP99))
	s.row("a write takes", "%v", w.WriteLatency)
	s.row("spike to absorb", "%v", w.Spike)
	if w.MemoryBudget > 0 {
		s.row("memory budget", "%v", config.Size(w.MemoryBudget))
	}
	s.title("slabs")
	s.capacity(p)
	s.WriteString("\n  slab.Options{\n")
	fmt.Fprintf(&s, "      SlabSize:  %s,\n", goSize(p.SlabSize))
	fmt.Fprintf(&s, "      SlabCount: %d,\n", p.SlabCount)
	s.WriteString("  }\n")
	return s.String()
}

// capacity is the rows for what the slabs of p do.
func (s *sheet) capacity(p plan.Capacity) {
	s.row("geometry", "%d × %v = %v", p.SlabCount, config.Size(p.SlabSize), config.Size(p.Memory))
	switch {
	case p.Limit == plan.LimitThroughput:
		s.row("guaranteed", "nothing: the destination cannot keep up")
	case p.SlabCount == 2:
		s.row("guaranteed", "nothing: of two slabs one is being written and one filled")
	default:
		s.row("guaranteed", "a stall of %s, whenever it begins", shortTime(p.Guaranteed))
	}
	s.row("best case", "a stall of %s, if it begins with everything empty", shortTime(p.BestCase))
	s.row("throughput", "%s, %s what comes", megabytes(p.Throughput), times(p.Headroom()))
	if p.Recovery > 0 && p.Workload.Spike > 0 {
		s.row("recovery", "%s after a stall the next one may come", shortTimeUp(p.Recovery))
	}
	s.row("a full slab", "%s lines of the mean size in one Write", count(p.SlabSize/p.Workload.LineSize))
}

// goSize writes n as one would in Go.
func goSize(n int) string {
	for _, shift := range []int{20, 10} {
		if n >= 1<<shift && n%(1<<shift) == 0 {
			return fmt.Sprintf("%d << %d", n>>shift, shift)
		}
	}
	return fmt.Sprint(n)
}

// megabytes is a rate in bytes a second for people.
func megabytes(rate float64) string {
	if rate < 999.5 {
		return fmt.Sprintf("%.3g B/s", rate)
	}
	return byteCount(int64(min(rate, math.MaxInt64/2))) + "/s"
}

// perSecond is a rate of whole things, with three figures if it is small.
func perSecond(rate float64, noun string) string {
	if rate < 999.5 { // above it three figures are 1e+03
		return fmt.Sprintf("%.3g %s/s", rate, noun)
	}
	return fmt.Sprintf("%s %s/s", count(max(1000, int(rate))), noun)
}

// shortTime writes d with three figures, rounded down: the figures of a plan
// are promises.
func shortTime(d time.Duration) string { return d.Truncate(lastFigure(d)).String() }

// shortTimeUp is shortTime rounded up.
func shortTimeUp(d time.Duration) string {
	unit := lastFigure(d)
	return (d + unit - 1).Truncate(unit).String()
}

// lastFigure is the unit of the third figure of d.
func lastFigure(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return unit
}

// times is a ratio for people.
func times(ratio float64) string {
	if ratio >= 1000 {
		return "more than 1,000 ×"
	}
	return fmt.Sprintf("%.2g ×", ratio)
}
