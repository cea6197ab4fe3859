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
	"runtime"
	"sync"
	"time"
)

// Subject is one thing measured in one case and mode.
type Subject struct {
	Case, Library, Mode string

	// Goroutines is how many run the loop at the same time.
	Goroutines int

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

// Measure runs the plan and reports progress to w.
func Measure(w io.Writer, plan Plan, subjects []Subject) ([]Sample, error) {
	ops := make([]int, len(subjects))
	for i, s := range subjects {
		n, err := calibrate(s, plan)
		if err != nil {
			return nil, s.wrap(err)
		}
		ops[i] = n
	}
	var samples []Sample
	for round := range plan.Rounds {
		begin := time.Now()
		for k := range subjects {
			i := (k + round) % len(subjects) // no subject always follows the same one
			s, err := measureQuietly(subjects[i], ops[i])
			if err != nil {
				return nil, subjects[i].wrap(err)
			}
			s.Round = round
			samples = append(samples, s)
		}
		fmt.Fprintf(w, "round %d of %d: %d subjects in %.1fs\n", round+1, plan.Rounds, len(subjects), time.Since(begin).Seconds())
	}
	return samples, nil
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

// measureQuietly takes a sample, up to three times while others are busy.
// Whether a sample counts never depends on its own outcome.
func measureQuietly(s Subject, ops int) (sample Sample, err error) {
	for range 3 {
		sample, err = measureOnce(s, ops)
		if err != nil || sample.OthersPct <= noisyPct {
			break
		}
	}
	return sample, err
}

func measureOnce(s Subject, ops int) (Sample, error) {
	run, err := s.Prepare()
	if err != nil {
		return Sample{}, fmt.Errorf("prepare: %w", err)
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
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	ownBefore, allBefore := processCPU(), machineCPU()
	begin := time.Now()
	close(start)
	done.Wait()
	caller := time.Since(begin)
	var extra map[string]float64
	if run.Finish != nil {
		if extra, err = run.Finish(ops + s.Goroutines*(each/20+1)); err != nil {
			return Sample{}, err
		}
	}
	took := time.Since(begin)
	own, all := processCPU()-ownBefore, machineCPU()-allBefore
	runtime.ReadMemStats(&after)
	per := func(total float64) float64 { return total / float64(ops) }
	sample := Sample{
		Case: s.Case, Library: s.Library, Mode: s.Mode, Ops: ops,
		NsPerOp:     per(float64(took)),
		CallerNs:    per(float64(caller)),
		CPUNsPerOp:  per(float64(own)),
		AllocsPerOp: per(float64(after.Mallocs - before.Mallocs)),
		BytesPerOp:  per(float64(after.TotalAlloc - before.TotalAlloc)),
		Extra:       extra,
	}
	if allBefore > 0 {
		sample.OthersPct = max(0, 100*float64(all-own)/float64(took))
	}
	return sample, nil
}
