package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/slab"
)

// The capacity tables that logf's documentation publishes for its SlabWriter
// ("Buffering Strategies", 2026-03-20), row by row, with its figures. Its
// formulas:
//
//	slabSize  ≥ R × M × L
//	slabCount ≥ S × R × M / slabSize
//	tolerance = slabCount × slabSize / (R × M)
//
// with R lines a second of M bytes, writes that take L and a stall of S. Of the
// lines only the mean size is published. Here all have that size, which is what
// suits the published figures best.

// published is a workload of these tables.
func published(rate float64, line int, latency, spike time.Duration) slab.Workload {
	return slab.Workload{Rate: rate, LineSize: line, LineSizeP99: line, WriteLatency: latency, Spike: spike}
}

type publishedSize struct {
	w      slab.Workload
	figure string
	size   int // of a slab, by the published formula
}

type publishedCount struct {
	w      slab.Workload
	size   int
	figure string
	count  int
}

type publishedMemory struct {
	count, size int
	figures     [2]string // at 10,000 and at 50,000 lines of 256 B a second
}

type publishedScenario struct {
	name        string
	count, size int
	w           slab.Workload // WriteLatency is that of the first table
	figure      string
}

const (
	fileLatency    = time.Millisecond      // "1 ms (file)" in the first table
	networkLatency = 10 * time.Millisecond // "10 ms (network)"
)

var publishedSizes = []publishedSize{
	{w: published(10_000, 256, fileLatency, 0), figure: "2.5 KB", size: 2_560},
	{w: published(10_000, 256, networkLatency, 0), figure: "25 KB", size: 25_600},
	{w: published(100_000, 200, networkLatency, 0), figure: "200 KB", size: 200_000},
}

var publishedCounts = []publishedCount{
	{published(10_000, 256, fileLatency, 50*time.Millisecond), 64 << 10, "2", 2},
	{published(10_000, 256, fileLatency, 200*time.Millisecond), 64 << 10, "1 + 8 = 8", 8},
	{published(50_000, 256, fileLatency, 100*time.Millisecond), 64 << 10, "20", 20},
	{published(100_000, 200, fileLatency, 100*time.Millisecond), 256 << 10, "8", 8},
}

var publishedMemories = []publishedMemory{
	{8, 64 << 10, [2]string{"200 ms", "40 ms"}},
	{16, 16 << 10, [2]string{"100 ms", "20 ms"}},
	{16, 64 << 10, [2]string{"400 ms", "80 ms"}},
	{4, 16 << 10, [2]string{"25 ms", "5 ms"}},
}

var publishedScenarios = []publishedScenario{
	{"Local file, moderate rate", 8, 64 << 10, published(10_000, 256, fileLatency, 200*time.Millisecond), "200 ms"},
	{"Network (Kibana), high rate", 16, 64 << 10, published(50_000, 256, networkLatency, 80*time.Millisecond), "80 ms"},
	{"Low-memory sidecar (network)", 4, 16 << 10, published(10_000, 256, networkLatency, 25*time.Millisecond), "25 ms"},
	{"High-throughput pipeline (network)", 8, 256 << 10, published(100_000, 200, networkLatency, 100*time.Millisecond), "100 ms"},
}

// publishedTables is the tables in Markdown.
func publishedTables() string {
	var b strings.Builder
	b.WriteString("### Slab size: what keeps up with the rate\n\n")
	table(&b, "Lines/s", "Line", "A write takes", "Published least size", "Best case: ρL", "Guaranteed: E > ρL", "the same, P99 = 4 × mean",
		"At the published size the destination is sure to take", "the same, P99 = 4 × mean", "`Plan` takes")
	for _, r := range publishedSizes {
		wide := r.w
		wide.LineSizeP99 = 4 * r.w.LineSize
		at, atWide := evaluated(r.w, r.size, 8), evaluated(wide, r.size, 8)
		rho := int(at.Demand * r.w.WriteLatency.Seconds())
		table(&b, count(int(r.w.Rate)), fmt.Sprintf("%d B", r.w.LineSize), r.w.WriteLatency.String(), r.figure,
			count(rho)+" B", count((rho/r.w.LineSize+1)*r.w.LineSize)+" B", count(rho+wide.LineSizeP99)+" B",
			fmt.Sprintf("%.1f %%", 100*at.Headroom()), fmt.Sprintf("%.1f %%", 100*atWide.Headroom()),
			config.Size(planned(wide).SlabSize).String())
	}
	b.WriteString(sizeErrors)

	b.WriteString("\n### Slab count: what outlasts a stall\n\n")
	table(&b, "Lines/s", "Line", "Slab", "Stall", "Published least count", "Best case: ⌈Sρ/B⌉", "Guaranteed: a + ⌈Sρ/E⌉", "The published count guarantees", "at best")
	for _, r := range publishedCounts {
		at := evaluated(r.w, r.size, r.count)
		slabs := r.w.Spike.Seconds() * at.Demand
		table(&b, count(int(r.w.Rate)), fmt.Sprintf("%d B", r.w.LineSize), config.Size(r.size).String(), r.w.Spike.String(), r.figure,
			fmt.Sprint(math.Ceil(slabs/float64(r.size))), fmt.Sprint(leastCount(r.w, r.size)),
			shortTime(at.Guaranteed), shortTime(at.BestCase))
	}
	b.WriteString(countErrors)

	b.WriteString("\n### Memory: what a geometry is good for, with lines of 256 B\n\n")
	table(&b, "Slabs", "Memory", "10,000 lines/s: published", "best case", "guaranteed", "if a write takes less than", "50,000 lines/s: published", "best case", "guaranteed", "if a write takes less than")
	for _, r := range publishedMemories {
		cells := []string{fmt.Sprintf("%d × %v", r.count, config.Size(r.size)), config.Size(r.count * r.size).String()}
		for i, rate := range []float64{10_000, 50_000} {
			at := evaluated(published(rate, 256, fileLatency, 0), r.size, r.count)
			cells = append(cells, r.figures[i], shortTime(at.BestCase), shortTime(at.Guaranteed), shortTime(longestWrite(at)))
		}
		table(&b, cells...)
	}
	b.WriteString(memoryErrors)

	b.WriteString("\n### Quick reference\n\n")
	table(&b, "Scenario", "Published slabs", "Memory", "Workload", "A write takes", "Published", "Best case", "Guaranteed", "Throughput / rate", "`Plan` takes for the published stall")
	for _, r := range publishedScenarios {
		at, plan := evaluated(r.w, r.size, r.count), planned(r.w)
		guaranteed := shortTime(at.Guaranteed)
		if at.Limit == slab.LimitThroughput {
			guaranteed = "none, it falls behind"
		}
		table(&b, r.name, fmt.Sprintf("%d × %v", r.count, config.Size(r.size)), config.Size(at.Memory).String(),
			fmt.Sprintf("%s lines/s of %d B", count(int(r.w.Rate)), r.w.LineSize), r.w.WriteLatency.String(),
			r.figure, shortTime(at.BestCase), guaranteed, fmt.Sprintf("%.2f", at.Headroom()),
			fmt.Sprintf("%d × %v = %v", plan.SlabCount, config.Size(plan.SlabSize), config.Size(plan.Memory)))
	}
	b.WriteString(scenarioErrors)
	return b.String()
}

const sizeErrors = `
- At exactly R × M × L the destination is busy all the time, and what a stall has
  piled up is never worked off.
- M is a mean. What is lost at the end of a slab when lines differ in size is
  enough to fall behind for good.
- The units change: 2.5 KB and 25 KB are 1,024 bytes each, 200 KB is 1,000.
`

const countErrors = `
- The slab that the destination is writing when the stall begins holds earlier
  lines and gives no room, and the one being filled may be nearly full: two more
  are needed, a = 2. "Add 1 for the slab currently being filled" stands below the
  published table but is not in it, except in the second row.
- A slab.Writer of 8 slabs or more spares its producers the waking of a thread and
  takes one slab for it: a = 3.
- "1 + 8 = 8" is 9, and 11 is what it takes here.
- Two slabs guarantee nothing: one is being written and one is being filled.
`

const memoryErrors = `
- The published figure is the best case, rounded down: it takes a writer that is
  empty when the stall begins.
- No write latency goes with the figures. 16KiB slabs at 50,000 lines/s need
  writes that are faster than the last column says, which a network's are not.
- "Reduce slabSize" for a tight budget also takes throughput away, and a larger
  part of each slab is lost at its end.
`

const scenarioErrors = `
- The second and the third scenario write to a network. At the 10 ms a write of
  the first table they fall behind without any stall: by the published formula
  itself they need slabs of 128,000 and of 25,600 bytes.
- The code as published lacks its multiplication signs (SlabSize(641024) for
  64*1024), which is read here as it was meant.
`

// table writes one row; the first one of a table, after an empty line, is its
// head.
func table(b *strings.Builder, cells ...string) {
	head := strings.HasSuffix(b.String(), "\n\n")
	fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
	if head {
		fmt.Fprintf(b, "|%s\n", strings.Repeat("---|", len(cells)))
	}
}

// longestWrite is the write latency with which the destination just keeps up.
func longestWrite(c slab.Capacity) time.Duration {
	return time.Duration(c.Headroom() * float64(c.Workload.WriteLatency))
}

// leastCount is how many slabs of size outlast the stall of w.
func leastCount(w slab.Workload, size int) int {
	n := 2
	for evaluated(w, size, n).Guaranteed < w.Spike {
		n++
	}
	return n
}

// evaluated and planned are for the workloads above, which are in range.
func evaluated(w slab.Workload, size, count int) slab.Capacity {
	c, err := slab.Evaluate(w, slab.Options{SlabSize: size, SlabCount: count})
	if err != nil {
		panic(err)
	}
	return c
}

func planned(w slab.Workload) slab.Capacity {
	c, err := slab.Plan(w)
	if err != nil {
		panic(err)
	}
	return c
}
