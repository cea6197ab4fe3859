package plan_test

import (
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/plan"
)

// A service logs 50,000 lines a second to a file whose disk stalls for 50 ms
// now and then.
func ExampleChoose() {
	p, err := plan.Choose(plan.Workload{
		Rate:         50_000,
		LineSize:     256,
		LineSizeP99:  1024,
		WriteLatency: time.Millisecond,
		Spike:        50 * time.Millisecond,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d slabs of %d KiB = %d KiB\n", p.SlabCount, p.SlabSize>>10, p.Memory>>10)
	fmt.Printf("a stall of %v is sure to be absorbed, at best one of %v\n",
		p.Guaranteed.Round(100*time.Microsecond), p.BestCase.Round(100*time.Microsecond))
	fmt.Printf("%.1f MB/s come, %.1f MB/s can be written\n", p.Demand/1e6, p.Throughput/1e6)

	// Output:
	// 13 slabs of 64 KiB = 832 KiB
	// a stall of 50.4ms is sure to be absorbed, at best one of 66.6ms
	// 12.8 MB/s come, 64.5 MB/s can be written
}

// A budget that is too small is not an error: the plan says what fits.
func ExampleCapacity_Err() {
	p, err := plan.Choose(plan.Workload{
		Rate:         50_000,
		LineSize:     256,
		WriteLatency: time.Millisecond,
		Spike:        100 * time.Millisecond,
		MemoryBudget: 1 << 20,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(p.Limit, p.SlabCount, p.SlabSize)
	fmt.Println(p.Err())
	// Output:
	// spike 64 16384
	// 64 slabs of 16 KiB are sure to outlast a stall of 73.2ms, not of 100ms: that takes 1472 KiB
}

var base = plan.Workload{Rate: 50_000, LineSize: 256, LineSizeP99: 1024, WriteLatency: time.Millisecond, Spike: 50 * time.Millisecond}

// with returns base changed by f.
func with(f func(w *plan.Workload)) plan.Workload {
	w := base
	f(&w)
	return w
}

func TestPlanRefusesBadWorkloads(t *testing.T) {
	for want, w := range map[string]plan.Workload{
		"Rate is 0, allowed is more than 0": with(func(w *plan.Workload) { w.Rate = 0 }),
		"Rate is -1,":                       with(func(w *plan.Workload) { w.Rate = -1 }),
		"Rate is NaN,":                      with(func(w *plan.Workload) { w.Rate = math.NaN() }),
		"Rate is +Inf,":                     with(func(w *plan.Workload) { w.Rate = math.Inf(1) }),
		"LineSize is 0, allowed is 1 to 1073741824 bytes": with(func(w *plan.Workload) { w.LineSize, w.LineSizeP99 = 0, 0 }),
		"LineSize is -5,": with(func(w *plan.Workload) { w.LineSize = -5 }),
		"LineSizeP99 is 255, allowed is 256 (LineSize) to":         with(func(w *plan.Workload) { w.LineSizeP99 = 255 }),
		"LineSizeP99 is 1073741825,":                               with(func(w *plan.Workload) { w.LineSizeP99 = 1<<30 + 1 }),
		"WriteLatency is 0s, allowed is more than 0, up to 1h":     with(func(w *plan.Workload) { w.WriteLatency = 0 }),
		"WriteLatency is 1h0m1s,":                                  with(func(w *plan.Workload) { w.WriteLatency = time.Hour + time.Second }),
		"Spike is -1ns, allowed is 0 to 24h":                       with(func(w *plan.Workload) { w.Spike = -1 }),
		"Spike is 25h0m0s,":                                        with(func(w *plan.Workload) { w.Spike = 25 * time.Hour }),
		"MemoryBudget is 255, allowed is 0 (none) or at least 256": with(func(w *plan.Workload) { w.MemoryBudget = 255 }),
		"MemoryBudget is -1,":                                      with(func(w *plan.Workload) { w.MemoryBudget = -1 }),
	} {
		if c, err := plan.Choose(w); c != (plan.Capacity{}) || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Choose(%+v) = %+v, %v, want an error with %q", w, c, err, want)
		}
		if _, err := plan.Evaluate(w, 0, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Evaluate(%+v): %v, want an error with %q", w, err, want)
		}
	}
	if _, err := plan.Evaluate(base, 63, 0); err == nil || !strings.Contains(err.Error(), "SlabSize is 63") {
		t.Errorf("Evaluate with slabs of 63 bytes: %v", err)
	}
}

func TestPlan(t *testing.T) {
	for _, tt := range []struct {
		name        string
		w           plan.Workload
		size, count int
		limit       plan.Limit
		needed      int
	}{
		{"the usual", base, 64 << 10, 13, plan.LimitNone, 13 << 16},
		{"no spike", with(func(w *plan.Workload) { w.Spike = 0 }), 64 << 10, 4, plan.LimitNone, 4 << 16},
		{"a slow destination takes larger slabs", with(func(w *plan.Workload) { w.WriteLatency = 10 * time.Millisecond }), 256 << 10, 5, plan.LimitNone, 5 << 18},
		{"long lines take larger slabs", with(func(w *plan.Workload) { w.LineSizeP99 = 64 << 10 }), 512 << 10, 4, plan.LimitNone, 4 << 19},
		{"a budget that is large enough changes nothing", with(func(w *plan.Workload) { w.MemoryBudget = 13 << 16 }), 64 << 10, 13, plan.LimitNone, 13 << 16},
		{"a tight one has smaller slabs", with(func(w *plan.Workload) { w.MemoryBudget = 13<<16 - 1 }), 32 << 10, 24, plan.LimitNone, 13 << 16},
		{"a budget too small", with(func(w *plan.Workload) { w.MemoryBudget = 256 << 10 }), 16 << 10, 16, plan.LimitSpike, 13 << 16},
		{"a budget too small for the rate", with(func(w *plan.Workload) { w.MemoryBudget = 25_000 }), 8 << 10, 3, plan.LimitThroughput, 13 << 16},
		{"a destination too slow for any slab", plan.Workload{Rate: 1e6, LineSize: 1024, WriteLatency: 10 * time.Second, MemoryBudget: 1 << 20}, 512 << 10, 2, plan.LimitThroughput, 0},
		{"a day of stall", plan.Workload{Rate: 1e6, LineSize: 1024, WriteLatency: time.Millisecond, Spike: 24 * time.Hour, MemoryBudget: 1 << 20}, 0, 0, plan.LimitThroughput, 0},
	} {
		c, err := plan.Choose(tt.w)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if tt.size > 0 && (c.SlabSize != tt.size || c.SlabCount != tt.count) || c.Limit != tt.limit || c.Needed != tt.needed {
			t.Errorf("%s: %d slabs of %d, limit %v, needed %d; want %d of %d, %v, %d\n%+v", tt.name, c.SlabCount, c.SlabSize, c.Limit, c.Needed, tt.count, tt.size, tt.limit, tt.needed, c)
		}
	}
}

// TestPlanKeepsItsPromises plans for workloads of every size.
func TestPlanKeepsItsPromises(t *testing.T) {
	limits := map[plan.Limit]int{}
	for i := range 20_000 {
		r := rand.New(rand.NewPCG(uint64(i), 2))
		w := plan.Workload{
			Rate:         logUniform(r, 1e-3, 1e9),
			LineSize:     int(logUniform(r, 1, 1e5)),
			WriteLatency: time.Duration(logUniform(r, 1, 3.6e12)),
			Spike:        time.Duration(logUniform(r, 1, 8.64e13)),
		}
		if r.IntN(2) == 0 {
			w.LineSizeP99 = w.LineSize * (1 + r.IntN(100))
		}
		if r.IntN(2) == 0 {
			w.MemoryBudget = int(logUniform(r, 256, 1e9))
		}
		c, err := plan.Choose(w)
		if err != nil {
			t.Fatalf("%+v: %v", w, err)
		}
		limits[c.Limit]++
		fail := func(what string) { t.Fatalf("workload %d: %s\n%+v", i, what, c) }
		if again, _ := plan.Choose(w); again != c {
			fail("planned a second time it is different")
		}
		same, err := plan.Evaluate(w, c.SlabSize, c.SlabCount)
		if err != nil || same != c {
			fail(fmt.Sprintf("its own options give %+v, %v", same, err))
		}
		if w.MemoryBudget > 0 && c.Memory > w.MemoryBudget || c.Memory != c.SlabSize*c.SlabCount {
			fail("memory")
		}
		if met := c.Limit == plan.LimitNone; met != (c.Err() == nil) || met && c.Guaranteed < w.Spike || met && c.Headroom() <= 1 || met && c.Needed == 0 {
			fail(fmt.Sprintf("met: %t, error %v", met, c.Err()))
		}
		if c.Guaranteed > c.BestCase || c.Guaranteed < 0 || c.Recovery < 0 {
			fail("durations")
		}
		if c.Limit == plan.LimitThroughput && (c.Headroom() > 1 || c.Guaranteed != 0) {
			fail("it is the throughput that lacks")
		}
		// A spike at the very edge of what the slabs guarantee.
		for beyond := range time.Duration(2) {
			edge := w
			edge.Spike, edge.MemoryBudget = c.Guaranteed+beyond, 0
			if edge.Spike > 24*time.Hour {
				break
			}
			if at, err := plan.Choose(edge); err != nil || at.Limit == plan.LimitNone && at.Guaranteed < edge.Spike {
				fail(fmt.Sprintf("a spike of %v: %v, %+v", edge.Spike, err, at))
			} else if more := moreThan(c.SlabCount); at.Limit == plan.LimitNone && at.SlabCount > 4 && at.SlabSize == c.SlabSize && at.SlabCount > c.SlabCount+more {
				fail(fmt.Sprintf("a spike of %v takes %d slabs", edge.Spike, at.SlabCount))
			}
		}
		if c.Limit == plan.LimitNone || c.Needed == 0 {
			continue
		}
		// What it says is needed is enough.
		w.MemoryBudget = c.Needed
		if c, err = plan.Choose(w); err != nil || c.Limit != plan.LimitNone || c.Memory > w.MemoryBudget {
			fail("what was needed is not enough")
		}
	}
	for _, l := range []plan.Limit{plan.LimitNone, plan.LimitThroughput, plan.LimitSpike} {
		if limits[l] < 500 {
			t.Errorf("limit %v came %d times only: %v", l, limits[l], limits)
		}
	}
}

// moreThan is how many slabs more than count a longer stall takes at most: one,
// as floating point may have it, and from 7 slabs two, as 8 are as good as 7.
func moreThan(count int) int {
	if count == 7 {
		return 2
	}
	return 1
}

// TestPlanForWholeSlabs has stalls in which exactly a whole number of slabs is
// filled, where floating point is on the edge of one more or one less.
func TestPlanForWholeSlabs(t *testing.T) {
	for slabs := range 5000 {
		for _, perSecond := range []int{1000, 700, 30} {
			spike := time.Duration(slabs) * time.Second / time.Duration(perSecond)
			w := plan.Workload{Rate: float64(1024 * perSecond), LineSize: 64, LineSizeP99: 64, WriteLatency: time.Microsecond, Spike: spike}
			c, err := plan.Choose(w)
			if err != nil || c.Limit != plan.LimitNone || c.Guaranteed < spike || c.SlabSize != 64<<10 || c.SlabCount > max(4, slabs+4) {
				t.Fatalf("%d slabs, %d a second: %v, %+v", slabs, perSecond, err, c)
			}
		}
	}
}

func TestCapacityErr(t *testing.T) {
	for _, tt := range []struct {
		w    plan.Workload
		want string
	}{
		{base, "<nil>"},
		{with(func(w *plan.Workload) { w.MemoryBudget = 25_000 }), "with 3 slabs of 8 KiB the destination is sure to take 7.17 MB/s at 1ms a write, but 12.8 MB/s come: that takes 832 KiB"},
		{plan.Workload{Rate: 1e6, LineSize: 1024, WriteLatency: 10 * time.Second, MemoryBudget: 1 << 20}, "with 2 slabs of 512 KiB the destination is sure to take 0.052 MB/s at 10s a write, but 1.02e+03 MB/s come: no slab is large enough for that, it takes a faster destination or several of them"},
		{plan.Workload{Rate: 1e6, LineSize: 1024, WriteLatency: time.Millisecond, Spike: 24 * time.Hour, MemoryBudget: 16 << 20}, "16 slabs of 1 MiB are sure to outlast a stall of 13.2ms, not of 24h0m0s: that is more than a Writer can have"},
	} {
		c, err := plan.Choose(tt.w)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(c.Err()); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}
