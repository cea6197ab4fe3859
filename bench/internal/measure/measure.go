// Package measure times subjects against each other fairly.
//
// Rounds are interleaved: a round measures every subject once, so a slow minute
// of the machine hits all of them. Each sample records what the rest of the
// machine used meanwhile; a noisy one is taken again up to twice, and if it
// stays noisy it is left out of the medians as long as enough others remain.
// Allocations are the difference of the runtime's
// count of mallocs, which hides nothing.
package measure

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Subject is one thing measured in one case and mode.
type Subject struct {
	Case, Library, Mode string

	// Goroutines is how many run the loop at the same time.
	Goroutines int

	// Procs is GOMAXPROCS during the sample. 0 leaves it as it is.
	Procs int

	// Prepare is called before each sample.
	Prepare func() (Run, error)
}

// Run is one sample's work.
type Run struct {
	// Loop does the operation n times; goroutine counts from 0.
	Loop func(goroutine, n int)

	// Finish, if set, ends what Loop began and checks it. It is inside the
	// measured time; Caller in the sample is the time before it. The map
	// becomes the sample's Extra.
	Finish func(ops int) (map[string]float64, error)

	// Verify, if set, checks the result of Finish, a file for example,
	// outside the measured time. What it returns is added to Extra.
	Verify func(ops int) (map[string]float64, error)

	// Discard, if set, is called at the end, also after an error.
	Discard func()
}

// Sample is one measurement.
type Sample struct {
	Case    string `json:"case"`
	Library string `json:"library"`
	Mode    string `json:"mode"`
	Round   int    `json:"round"`
	Ops     int    `json:"ops"`

	NsPerOp     float64 `json:"ns_op"`        // wall time, Finish included
	CallerNs    float64 `json:"caller_ns_op"` // wall time of the loops alone
	CPUNsPerOp  float64 `json:"cpu_ns_op"`    // user and system time of the process
	AllocsPerOp float64 `json:"allocs_op"`
	BytesPerOp  float64 `json:"bytes_op"`
	OthersPct   float64 `json:"others_pct"` // of one core, used by other processes meanwhile

	Extra map[string]float64 `json:"extra,omitempty"`
}

// Plan says how much is measured.
type Plan struct {
	Rounds int
	Time   time.Duration // of one sample, about
	Ops    int           // operations in one sample; 0: as many as take Time
}

// Measure runs the plan and reports progress to w. Subjects of one case and mode
// that are listed one after the other are also taken so, in an order that differs
// from round to round: what the machine does for seconds concerns all of them.
func Measure(w io.Writer, plan Plan, subjects []Subject) ([]Sample, error) {
	ops := make([]int, len(subjects))
	for i, s := range subjects {
		n, err := calibrate(s, plan)
		if err != nil {
			return nil, s.wrap(err)
		}
		ops[i] = n
	}
	var groups [][]int
	for i, s := range subjects {
		if i == 0 || s.Case != subjects[i-1].Case || s.Mode != subjects[i-1].Mode {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], i)
	}
	return interleave(w, plan.Rounds, groups, func(i int) (Sample, error) {
		sample, err := measureOnce(subjects[i], ops[i])
		if err != nil {
			return Sample{}, subjects[i].wrap(err)
		}
		return sample, nil
	})
}

// Interleave takes a sample of each of n subjects in every round, and reports
// progress to w. The first round takes them in order, and each further round in
// another order, which is the same in every run. A sample is taken again, up to
// twice, while other processes are busy, unless there are too few rounds to leave
// samples out. Whether it is does not depend on its outcome.
func Interleave(w io.Writer, rounds, n int, take func(subject int) (Sample, error)) ([]Sample, error) {
	groups := make([][]int, n)
	for i := range groups {
		groups[i] = []int{i}
	}
	return interleave(w, rounds, groups, take)
}

// interleave is Interleave for subjects in groups, which stay together.
func interleave(w io.Writer, rounds int, groups [][]int, take func(subject int) (Sample, error)) ([]Sample, error) {
	var samples []Sample
	for round := range rounds {
		begin := time.Now()
		for _, subject := range order(round, groups) {
			var sample Sample
			var err error
			for range 3 {
				if sample, err = take(subject); err != nil {
					return nil, err
				}
				if sample.OthersPct <= NoisyPct || rounds < enoughQuiet {
					break
				}
			}
			sample.Round = round
			samples = append(samples, sample)
		}
		fmt.Fprintf(w, "round %d of %d: %d subjects in %.1fs\n", round+1, rounds, len(samples)/(round+1), time.Since(begin).Seconds())
	}
	return samples, nil
}

func order(round int, groups [][]int) []int {
	if round == 0 {
		return slices.Concat(groups...)
	}
	rng := rand.New(rand.NewPCG(0, uint64(round)))
	var all []int
	for _, g := range rng.Perm(len(groups)) {
		for _, i := range rng.Perm(len(groups[g])) {
			all = append(all, groups[g][i])
		}
	}
	return all
}

// A Meter tells what this process and the others used since it was started.
type Meter struct {
	begin    time.Time
	own, all time.Duration
}

// StartMeter starts a Meter.
func StartMeter() Meter { return Meter{time.Now(), ProcessCPU(), machineCPU()} }

// Read returns the time since the start, the CPU time of this process, and
// what the others used in percent of one core; 0 where that is not known.
func (m Meter) Read() (took, own time.Duration, othersPct float64) {
	took, own = time.Since(m.begin), ProcessCPU()-m.own
	if m.all > 0 {
		othersPct = max(0, 100*float64(machineCPU()-m.all-own)/float64(took))
	}
	return took, own, othersPct
}

// A Gauge is a Meter that counts what this process allocates too.
type Gauge struct {
	Meter
	before runtime.MemStats
}

// StartGauge starts a Gauge.
func StartGauge() *Gauge {
	g := new(Gauge)
	runtime.ReadMemStats(&g.before)
	g.Meter = StartMeter()
	return g
}

// Sample is what ops operations took until now, and the collections meanwhile.
func (g *Gauge) Sample(ops int) (s Sample, cycles uint32, pause time.Duration) {
	took, own, others := g.Read()
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	n := float64(ops)
	return Sample{
		Ops: ops, NsPerOp: float64(took) / n, CPUNsPerOp: float64(own) / n, OthersPct: others,
		AllocsPerOp: float64(after.Mallocs-g.before.Mallocs) / n, BytesPerOp: float64(after.TotalAlloc-g.before.TotalAlloc) / n,
	}, after.NumGC - g.before.NumGC, time.Duration(after.PauseTotalNs - g.before.PauseTotalNs)
}

func (s Subject) wrap(err error) error {
	return fmt.Errorf("%s/%s/%s: %w", s.Case, s.Library, s.Mode, err)
}

// calibrate returns how many operations a sample has.
func calibrate(s Subject, plan Plan) (int, error) {
	if plan.Ops > 0 {
		return max(s.Goroutines, plan.Ops), nil
	}
	for n := s.Goroutines * 100; ; n *= 10 {
		got, err := measureOnce(s, n)
		if err != nil {
			return 0, err
		}
		if took := got.NsPerOp * float64(n); took > 5e6 {
			return max(s.Goroutines, int(float64(plan.Time)/got.NsPerOp)), nil
		}
	}
}

func measureOnce(s Subject, ops int) (Sample, error) {
	run, err := s.Prepare()
	if err != nil {
		return Sample{}, fmt.Errorf("prepare: %w", err)
	}
	if run.Discard != nil {
		defer run.Discard()
	}
	if s.Procs > 0 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(s.Procs))
	}
	each := ops / s.Goroutines
	ops = each * s.Goroutines
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	for g := range s.Goroutines {
		ready.Add(1)
		done.Go(func() {
			run.Loop(g, each/20+1) // fills pools and caches
			ready.Done()
			<-start
			run.Loop(g, each)
		})
	}
	ready.Wait()
	runtime.GC()
	gauge := StartGauge()
	close(start)
	done.Wait()
	caller := time.Since(gauge.begin)
	total := ops + s.Goroutines*(each/20+1)
	extra := map[string]float64{}
	add := func(step func(ops int) (map[string]float64, error)) error {
		if step == nil {
			return nil
		}
		more, err := step(total)
		maps.Copy(extra, more)
		return err
	}
	if err := add(run.Finish); err != nil {
		return Sample{}, err
	}
	sample, _, _ := gauge.Sample(ops)
	sample.Case, sample.Library, sample.Mode = s.Case, s.Library, s.Mode
	sample.CallerNs, sample.Extra = float64(caller)/float64(ops), extra
	return sample, add(run.Verify)
}
