package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/internal/plan"
)

// judge draws conclusions from what was seen. c is for the workload that was
// seen, as changed by flags; fixed says that its slabs were given.
func (o *observation) judge(c plan.Capacity, fixed bool) {
	s := o.after
	advise := func(format string, args ...any) { o.advice = append(o.advice, fmt.Sprintf(format, args...)) }

	if full := o.dropped("Full"); full > 0 {
		advise("%s found no room and were dropped since the start.", lines(int(full)))
	}
	switch {
	case s.Waiting > 0:
		advise("%s waiting for a slab at this moment.", areProducers(s.Waiting))
	case s.SlabsPeak >= s.Slabs:
		advise("All %d slabs have been taken at once: producers may have had to wait.", s.Slabs)
	case 2*s.SlabsPeak <= s.Slabs:
		advise("No more than %d of %d slabs have been taken at once: so far they were enough.", s.SlabsPeak, s.Slabs)
	}
	if gone := o.dropped("GaveUp"); gone > 0 || s.Errors > 0 {
		advise("%s of the destination failed, and %s were given up: slabs bridge a stall, not an outage.", plural(int(s.Errors), "write"), lines(int(gone)))
	}
	if n := o.dropped("TooLarge"); n > 0 {
		advise("%s were longer than MaxLine.", lines(int(n)))
	}
	if c.Workload.LineSizeP99 >= 8*c.Workload.LineSize {
		advise("The longest line has %d times the mean size. If it is an exception, give the usual maximum as -line-p99.", c.Workload.LineSizeP99/c.Workload.LineSize)
	}
	if c.Limit == plan.LimitNone && !fixed && c.SlabCount != s.Slabs {
		advise("The Writer has %s, planned are %d of %v. -slab-size SIZE says what those it has are good for.",
			plural(s.Slabs, "slab"), c.SlabCount, config.Size(c.SlabSize))
	}
	if c.Limit != plan.LimitThroughput && c.Headroom() < 2 {
		advise("The destination can take %.2g times what comes: it needs long to recover from a stall.", c.Headroom())
	}
	advise("The rate is a mean over %v. If the busiest second has more, give that as -rate.", o.elapsed.Round(time.Millisecond))
}

func areProducers(n int) string {
	if n == 1 {
		return "1 producer is"
	}
	return count(n) + " producers are"
}

// dropped returns how many lines were dropped for a reason.
func (o *observation) dropped(reason string) uint64 {
	for _, d := range o.drops {
		if d.reason == reason {
			return d.lines
		}
	}
	return 0
}

// text shows o for people.
func (o *observation) text() string {
	var t sheet
	s, w := o.after, o.workload
	t.title("observed for %v: %s", o.elapsed.Round(time.Millisecond), o.source)
	t.row("rate", "%s, %s", perSecond(w.Rate, "lines"), megabytes(w.Rate*float64(w.LineSize)))
	t.row("line", "%s B in the mean, %s B at most since the start", count(w.LineSize), count(s.LineMax))
	t.row("a write took", "%s in the mean, %s at most since the start", shortTime(w.WriteLatency), shortTime(s.WriteMax))
	t.row("slabs taken", "%d of %d now, %d at most since the start", s.Slabs-s.SlabsFree, s.Slabs, s.SlabsPeak)
	var dropped []string
	total := uint64(0)
	for _, d := range o.drops {
		total += d.lines
		dropped = append(dropped, fmt.Sprintf("%s %s", d.reason, count(int(d.lines))))
	}
	t.row("dropped", "%s since the start", strings.TrimSuffix(lines(int(total))+": "+strings.Join(dropped, ", "), ": "))
	t.row("failed writes", "%s since the start", count(int(s.Errors)))
	t.title("advice")
	for _, a := range o.advice {
		t.WriteString("  - " + a + "\n")
	}
	return t.String()
}

// observedJSON is what -json adds with -from. "Since the start" is of the
// Writer.
type observedJSON struct {
	Source    string        `json:"source"`
	Elapsed   time.Duration `json:"elapsed_ns"`
	Workload  workloadJSON  `json:"workload"`
	WriteMax  time.Duration `json:"write_max_ns"` // since the start
	LineMax   int           `json:"line_max_bytes"`
	Slabs     int           `json:"slabs"`
	SlabsPeak int           `json:"slabs_peak"` // since the start
	Waiting   int           `json:"producers_waiting"`
	Dropped   uint64        `json:"dropped_lines"` // since the start
	Errors    uint64        `json:"failed_writes"` // since the start
	Advice    []string      `json:"advice"`
}

func (o *observation) object() *observedJSON {
	total := uint64(0)
	for _, d := range o.drops {
		total += d.lines
	}
	s := o.after
	return &observedJSON{
		Source: o.source, Elapsed: o.elapsed, Workload: workloadJSON(o.workload),
		WriteMax: s.WriteMax, LineMax: s.LineMax, Slabs: s.Slabs, SlabsPeak: s.SlabsPeak,
		Waiting: s.Waiting, Dropped: total, Errors: s.Errors, Advice: o.advice,
	}
}
