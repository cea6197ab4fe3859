package plan_test

import (
	"math"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/plan"
	"github.com/rollway/rollway/slab"
)

func TestGuaranteedStallMakesNoProducerWait(t *testing.T) {
	for i := range trials() {
		r := seeded(i)
		tr, c := randomTrial(t, r)
		tr.stall = c.Guaranteed
		for _, offset := range moments(r, tr.w.WriteLatency, fillTime(c)) {
			tr.offset, tr.nth = offset, 2+r.IntN(4)
			tr.sizes = shapes(r, tr.w, tr.o.SlabSize)
			if waited := tr.run(t); waited > 0 {
				t.Fatalf("workload %d: a producer waited %v\n%v", i, waited, &tr)
			}
		}
	}
}

// TestBoundIsExact tries the most wasteful lines and the worst moment: a stall
// of (N-1)·E/ρ - L, from which the guarantee is derived, makes no producer wait,
// and one that is a hair longer does. It shows that the trials are as hard as
// the workload allows. Of 8 slabs and more one may be gone as well, depending on
// when the Writer looked.
func TestBoundIsExact(t *testing.T) {
	tried, uniform, many := 0, 0, 0
	for i := range trials() {
		r := seeded(i + 5000)
		tr, c := randomTrial(t, r)
		if tr.o.SlabCount < 3 || tr.o.SlabSize < 2*tr.w.LineSizeP99 {
			continue // the longest line alone is more than E
		}
		tried++
		tr.workers, tr.nth = 1, 3
		tr.o.FlushInterval = time.Hour
		tr.offset = tr.w.WriteLatency - 1
		room := tr.o.SlabSize - tr.w.LineSizeP99 + 1
		if tr.w.LineSizeP99 == tr.w.LineSize {
			room = tr.o.SlabSize - tr.o.SlabSize%tr.w.LineSize
			uniform++
		}
		slabs, outcomes := tr.o.SlabCount-1, []bool{false, true}
		if tr.o.SlabCount >= 8 {
			slabs, outcomes = slabs-1, outcomes[:1]
			many++
		}
		exact := time.Duration(float64(slabs*room)/c.Demand*1e9) - tr.w.WriteLatency
		for _, wait := range outcomes {
			tr.stall = exact - 10
			if wait {
				tr.stall = exact + 10
			}
			tr.sizes = wasteful(tr.w, tr.o.SlabSize)
			if waited := tr.run(t); waited > 0 != wait {
				t.Fatalf("workload %d: a producer waited %v, want %t\n%v", i, waited, wait, &tr)
			}
		}
	}
	if uniform < trials()/20 || many < trials()/20 {
		t.Errorf("all lines had the same size in %d workloads only, there were 8 slabs or more in %d", uniform, many)
	}
	enough(t, tried)
}

func TestGuaranteeHoldsAgainAfterRecovery(t *testing.T) {
	tried := 0
	for i := range trials() {
		r := seeded(i + 1000)
		tr, c := randomTrial(t, r)
		tr.stall = c.Guaranteed
		tr.w.Spike = c.Guaranteed
		if tr.o.SlabCount == 2 {
			continue // guarantees nothing
		}
		c, err := plan.Evaluate(tr.w, tr.o.SlabSize, tr.o.SlabCount)
		if err != nil {
			t.Fatal(err)
		}
		if c.Limit != plan.LimitNone || c.Recovery <= 0 {
			t.Fatalf("a spike of the guaranteed length: %+v", c)
		}
		if c.Recovery > 200*fillTime(c) {
			continue // the destination is as good as saturated
		}
		tried++
		tr.gap = c.Recovery
		tr.offset, tr.nth = within(r, fillTime(c)), 2+r.IntN(4)
		tr.sizes = shapes(r, tr.w, tr.o.SlabSize)
		if waited := tr.run(t); waited > 0 {
			t.Fatalf("workload %d: a producer waited %v\n%v", i, waited, &tr)
		}
	}
	enough(t, tried)
}

func TestPlannedSlabsAbsorbTheSpike(t *testing.T) {
	tried := 0
	for i := range trials() {
		r := seeded(i + 2000)
		w := plan.Workload{
			Rate:         logUniform(r, 20, 1e6),
			LineSize:     200 + r.IntN(4000), // else a slab of 64 KiB is thousands of lines
			WriteLatency: time.Duration(logUniform(r, 1e3, 2e7)),
		}
		w.LineSizeP99 = w.LineSize * (1 + r.IntN(6))
		w.Spike = time.Duration(r.Float64() * 4e9 * 64 * 1024 / w.Rate / float64(w.LineSize))
		if i%2 == 1 {
			w.MemoryBudget = 100_000 + r.IntN(300_000)
		}
		c, err := plan.Choose(w)
		if err != nil {
			t.Fatal(err)
		}
		if c.Limit == plan.LimitThroughput || c.Memory > 1<<20 {
			continue
		}
		tried++
		tr := trial{w: w, o: slab.Options{SlabSize: c.SlabSize, SlabCount: c.SlabCount}, workers: 1 + r.IntN(3), stall: min(w.Spike, c.Guaranteed)}
		for _, offset := range []time.Duration{w.WriteLatency - 1, within(r, fillTime(c))} {
			tr.offset, tr.nth = offset, 2+r.IntN(2)
			tr.sizes = shapes(r, w, c.SlabSize)
			if waited := tr.run(t); waited > 0 {
				t.Fatalf("workload %d: a producer waited %v\n%v", i, waited, &tr)
			}
		}
	}
	enough(t, tried)
}

func TestNoStallBeyondTheBestCaseIsAbsorbed(t *testing.T) {
	for i := range trials() {
		r := seeded(i + 3000)
		tr, c := randomTrial(t, r)
		// A line that is under way when the stall ends has not waited yet.
		line := time.Duration(float64(tr.w.LineSizeP99)/c.Demand*1e9) + 1
		tr.stall = c.BestCase + 2*line
		for _, offset := range moments(r, tr.w.WriteLatency, fillTime(c)) {
			tr.offset, tr.nth = offset, 2+r.IntN(4)
			tr.sizes = shapes(r, tr.w, tr.o.SlabSize)
			if waited := tr.run(t); waited == 0 {
				t.Fatalf("workload %d: no producer waited\n%v", i, &tr)
			}
		}
	}
}

// TestThroughputIsWhatTheDestinationIsSureToTake has a destination that never
// stalls and the most wasteful lines: a little less than Throughput makes no
// producer wait, a little more does before long.
func TestThroughputIsWhatTheDestinationIsSureToTake(t *testing.T) {
	tried := 0
	for i := range trials() {
		r := seeded(i + 6000)
		tr, c := randomTrial(t, r)
		if tr.o.SlabSize < 2*tr.w.LineSizeP99 {
			continue
		}
		tried++
		tr.o.SlabCount = 2 + i%2
		tr.workers, tr.nth = 1, 400 // a stall of no length that ends the trial
		for _, wait := range []bool{false, true} {
			share := 0.99
			if wait {
				share = 1.02
			}
			tr.w.Rate = share * c.Throughput / float64(tr.w.LineSize)
			tr.o.FlushInterval = time.Hour
			tr.sizes = wasteful(tr.w, tr.o.SlabSize)
			if waited := tr.run(t); waited > 0 != wait {
				t.Fatalf("workload %d: at %v of the throughput a producer waited %v, want %t\n%v", i, share, waited, wait, &tr)
			}
		}
	}
	enough(t, tried)
}

// TestUsualFormulaBlocks tries the formula that is in use elsewhere, slab count
// ⌈S × R × M / size⌉, on lines of one size that never pause. If more than one
// slab's worth of them comes in the stall, a producer waits at the worst moment,
// in every workload. One slab more, "for the one being filled", is not always
// enough; two more are.
func TestUsualFormulaBlocks(t *testing.T) {
	oneMore := 0
	for i := range trials() {
		r := seeded(i + 4000)
		tr, c := randomTrial(t, r)
		tr.w.LineSizeP99 = tr.w.LineSize
		tr.o.FlushInterval = time.Hour
		if r.IntN(2) == 0 { // hardly more than the least size that goes with the formula
			tr.o.SlabSize = max(64, 2*tr.w.LineSize, int(1.1*c.Demand*tr.w.WriteLatency.Seconds()))
		}
		tr.stall = time.Duration((1.01 + 7*r.Float64()) * float64(tr.o.SlabSize) / c.Demand * 1e9)
		tr.sizes = func() int { return tr.w.LineSize }
		usual := int(math.Ceil(tr.stall.Seconds() * c.Demand / float64(tr.o.SlabSize)))
		tr.offset, tr.nth = tr.w.WriteLatency-1, 3
		for more := range 2 {
			tr.o.SlabCount = usual + more
			waited := tr.run(t) > 0
			if more == 0 && !waited {
				t.Errorf("workload %d: no producer waited\n%v", i, &tr)
			}
			if more == 1 && waited {
				oneMore++
			}
		}
	}
	if oneMore == 0 {
		t.Error("one slab more was always enough")
	}
	t.Logf("with one slab more a producer waited in %d of %d workloads", oneMore, trials())
}
