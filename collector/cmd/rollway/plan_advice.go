package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/internal/plan"
)

// judge derives advice. c is planned for the observed workload as changed by flags;
// fixed reports whether flags gave the slabs.
func (o *observation) judge(c plan.Capacity, fixed bool) {
	advise := func(format string, args ...any) { o.Advice = append(o.Advice, fmt.Sprintf(format, args...)) }

	if full := o.drops["Full"]; full > 0 {
		advise("%s found no room and were dropped since the start.", lines(int(full)))
	}
	switch {
	case o.Waiting > 0:
		advise("%s waiting for a slab at this moment.", areProducers(o.Waiting))
	case o.SlabsPeak >= o.Slabs:
		advise("All %d slabs have been taken at once: producers may have had to wait.", o.Slabs)
	case 2*o.SlabsPeak <= o.Slabs:
		advise("No more than %d of %d slabs have been taken at once: so far they were enough.", o.SlabsPeak, o.Slabs)
	}
	if gone := o.drops["GaveUp"]; gone > 0 || o.Errors > 0 {
		advise("%s of the destination failed, and %s were given up: slabs bridge a stall, not an outage.", plural(int(o.Errors), "write"), lines(int(gone)))
	}
	if n := o.drops["TooLarge"]; n > 0 {
		advise("%s were longer than MaxLine.", lines(int(n)))
	}
	if c.Workload.LineSizeP99 >= 8*c.Workload.LineSize {
		advise("The longest line has %d times the mean size. If it is an exception, give the usual maximum as -line-p99.", c.Workload.LineSizeP99/c.Workload.LineSize)
	}
	if c.Limit == plan.LimitNone && !fixed && c.SlabCount != o.Slabs {
		advise("The Writer has %s; the plan is %d of %v. -slab-size SIZE evaluates those it has.",
			plural(o.Slabs, "slab"), c.SlabCount, config.Size(c.SlabSize))
	}
	if c.Limit != plan.LimitThroughput && c.Headroom() < 2 {
		advise("The destination can take %.2g times what comes: it needs long to recover from a stall.", c.Headroom())
	}
	advise("The rate is a mean over %v. If the busiest second has more, give that as -rate.", o.Elapsed.Round(time.Millisecond))
}

func areProducers(n int) string {
	if n == 1 {
		return "1 producer is"
	}
	return count(n) + " producers are"
}

// text formats o for people.
func (o *observation) text() string {
	var t sheet
	w := o.Workload
	t.title("observed for %v: %s", o.Elapsed.Round(time.Millisecond), o.Source)
	t.row("rate", "%s, %s", perSecond(w.Rate, "lines"), megabytes(w.Rate*float64(w.LineSize)))
	t.row("line", "%s B in the mean, %s B at most since the start", count(w.LineSize), count(o.LineMax))
	t.row("a write took", "%s in the mean, %s at most since the start", shortTime(w.WriteLatency), shortTime(o.WriteMax))
	t.row("slabs taken", "%d of %d now, %d at most since the start", o.Slabs-o.slabsFree, o.Slabs, o.SlabsPeak)
	var dropped []string
	for _, reason := range slices.Sorted(maps.Keys(o.drops)) {
		dropped = append(dropped, fmt.Sprintf("%s %s", reason, count(int(o.drops[reason]))))
	}
	t.row("dropped", "%s since the start", strings.TrimSuffix(lines(int(o.Dropped))+": "+strings.Join(dropped, ", "), ": "))
	t.row("failed writes", "%s since the start", count(int(o.Errors)))
	t.title("advice")
	for _, a := range o.Advice {
		t.WriteString("  - " + a + "\n")
	}
	return t.String()
}
