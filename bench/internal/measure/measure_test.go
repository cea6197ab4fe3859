package measure

import (
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

func TestMeasureCountsOperations(t *testing.T) {
	var kept atomic.Pointer[[]byte]
	var finished int
	subject := Subject{Case: "c", Library: "l", Mode: "m", Goroutines: 2, Prepare: func() (Run, error) {
		var done atomic.Int64
		return Run{
			Loop: func(_, n int) {
				for range n {
					b := make([]byte, 64)
					kept.Store(&b)
					done.Add(1)
				}
			},
			Finish: func(ops int) (map[string]float64, error) {
				finished++
				if int64(ops) != done.Load() {
					t.Errorf("Finish was told of %d operations, %d were done", ops, done.Load())
				}
				return map[string]float64{"x": 7}, nil
			},
		}, nil
	}}
	samples, err := Measure(io.Discard, Plan{Rounds: 3, Ops: 5000}, []Subject{subject})
	if err != nil || len(samples) != 3 || finished < 3 {
		t.Fatalf("%d samples, %d finished, %v", len(samples), finished, err)
	}
	for i, s := range samples {
		// Two a turn: the slice and its header. A goroutine's end may add a few.
		if s.Round != i || s.NsPerOp <= 0 || s.CallerNs > s.NsPerOp || s.AllocsPerOp < 2 || s.AllocsPerOp > 2.1 || s.BytesPerOp < 64 || s.Extra["x"] != 7 {
			t.Errorf("sample %d: %+v", i, s)
		}
	}
	broken := errors.New("broken")
	subject.Prepare = func() (Run, error) { return Run{}, broken }
	if _, err := Measure(io.Discard, Plan{Rounds: 1, Time: time.Millisecond}, []Subject{subject}); !errors.Is(err, broken) {
		t.Errorf("a Prepare that fails gives %v", err)
	}
}

func TestVerifyAndProcs(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	var procs, verified, discarded int
	broken := errors.New("a line is missing")
	subject := func(verify error) Subject {
		return Subject{Case: "c", Goroutines: 1, Procs: 3, Prepare: func() (Run, error) {
			return Run{
				Loop:   func(_, n int) { procs = runtime.GOMAXPROCS(0) },
				Finish: func(ops int) (map[string]float64, error) { return map[string]float64{"a": 1}, nil },
				Verify: func(ops int) (map[string]float64, error) {
					verified = ops
					return map[string]float64{"b": 2}, verify
				},
				Discard: func() { discarded++ },
			}, nil
		}}
	}
	samples, err := Measure(io.Discard, Plan{Rounds: 1, Ops: 100}, []Subject{subject(nil)})
	if err != nil || len(samples) != 1 || samples[0].Extra["a"] != 1 || samples[0].Extra["b"] != 2 {
		t.Errorf("samples %+v, %v", samples, err)
	}
	if procs != 3 || verified != 106 || discarded != 1 || runtime.GOMAXPROCS(0) != before {
		t.Errorf("GOMAXPROCS %d in the loop and %d after, %d operations verified, discarded %d times", procs, runtime.GOMAXPROCS(0), verified, discarded)
	}
	if _, err := Measure(io.Discard, Plan{Rounds: 1, Ops: 100}, []Subject{subject(broken)}); !errors.Is(err, broken) || discarded != 2 {
		t.Errorf("a Verify that fails gives %v, discarded %d times", err, discarded)
	}
}

func TestInterleaveTakesNoisySamplesAgain(t *testing.T) {
	taken := make([]int, 2)
	take := func(i int) (Sample, error) {
		taken[i]++
		return Sample{Ops: i, OthersPct: float64(100 * i)}, nil // the second is always noisy
	}
	samples, err := Interleave(io.Discard, enoughQuiet, 2, take)
	if err != nil || len(samples) != 2*enoughQuiet || taken[0] != enoughQuiet || taken[1] != 3*enoughQuiet {
		t.Errorf("%d samples, taken %v times, %v", len(samples), taken, err)
	}
	for i, s := range samples {
		if first := samples[i-i%2]; s.Round != i/2 || i%2 == 1 && s.Ops == first.Ops {
			t.Errorf("sample %d is of subject %d in round %d", i, s.Ops, s.Round)
		}
	}
	if _, err := Interleave(io.Discard, 1, 2, take); err != nil || taken[1] != 3*enoughQuiet+1 {
		t.Errorf("in too few rounds to count: %v, taken %v times", err, taken)
	}
}

// TestMeasureKeepsCasesTogether: a ratio is one of samples that were taken one
// after the other.
func TestMeasureKeepsCasesTogether(t *testing.T) {
	var subjects []Subject
	for _, c := range []string{"a", "b", "c", "d"} {
		for _, library := range []string{"1", "2", "3"} {
			subjects = append(subjects, Subject{Case: c, Library: library, Goroutines: 1, Prepare: func() (Run, error) {
				return Run{Loop: func(int, int) {}}, nil
			}})
		}
	}
	const rounds = 4
	samples, err := Measure(io.Discard, Plan{Rounds: rounds, Ops: 1}, subjects)
	if err != nil || len(samples) != rounds*len(subjects) {
		t.Fatalf("%d samples, %v", len(samples), err)
	}
	orders := map[string]bool{}
	for i := 0; i < len(samples); i += 3 {
		order := ""
		for _, s := range samples[i : i+3] {
			if s.Case != samples[i].Case || s.Round != i/len(subjects) {
				t.Fatalf("sample %d: case %s in round %d", i, s.Case, s.Round)
			}
			order += s.Library
		}
		orders[order] = true
	}
	if len(orders) < 2 {
		t.Errorf("always in the order %v", orders)
	}
}

func TestInterleaveOrders(t *testing.T) {
	const n, rounds = 8, 3
	var runs [2][]int
	for i := range runs {
		samples, err := Interleave(io.Discard, rounds, n, func(i int) (Sample, error) { return Sample{Ops: i}, nil })
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range samples {
			runs[i] = append(runs[i], s.Ops)
		}
	}
	if !slices.Equal(runs[0], runs[1]) {
		t.Errorf("one run has the order %v, another %v", runs[0], runs[1])
	}
	first, second, third := runs[0][:n], runs[0][n:2*n], runs[0][2*n:]
	if !slices.IsSorted(first) || slices.Equal(first, second) || slices.Equal(second, third) {
		t.Errorf("the rounds have the orders %v, %v and %v", first, second, third)
	}
}

func TestSummarizeLeavesOutNoisySamples(t *testing.T) {
	results := func(others ...float64) *Results {
		r := new(Results)
		for i, o := range others {
			r.Samples = append(r.Samples, Sample{Case: "c", NsPerOp: float64(i + 1), OthersPct: o})
		}
		return r
	}
	k := Key{Case: "c"}
	if s := results(0, 90, 0, 0, 0, 90, 0).Summarize()[k]; s.Samples != 5 || s.Noisy != 2 || s.Ns != 4 || s.MinNs != 1 || s.MaxNs != 7 {
		t.Errorf("two of seven noisy: %+v", s)
	}
	if s := results(0, 90, 90, 0, 0, 0).Summarize()[k]; s.Samples != 6 || s.NoisyButUsedSamples != 2 || s.Ns != 3.5 {
		t.Errorf("two of six noisy: %+v", s)
	}
}

func TestRatioIsOfRounds(t *testing.T) {
	a, b := Key{Case: "c", Library: "a"}, Key{Case: "c", Library: "b"}
	r := new(Results)
	add := func(round int, nsA, nsB, others float64) {
		r.Samples = append(r.Samples,
			Sample{Case: "c", Library: "b", Round: round, NsPerOp: nsB, OthersPct: others},
			Sample{Case: "c", Library: "a", Round: round, NsPerOp: nsA},
			Sample{Case: "c", Library: "other", Round: round, NsPerOp: 1000})
	}
	if ratio, rounds := r.Ratio(a, b); !math.IsNaN(ratio) || rounds != 0 {
		t.Errorf("of nothing: %v of %d rounds", ratio, rounds)
	}
	for i, machine := range []float64{1, 10, 2, 4, 3} { // a takes twice b's time, whatever the machine does
		add(i, 2*machine, machine, 0)
	}
	if ratio, rounds := r.Ratio(a, b); ratio != 2 || rounds != 5 {
		t.Errorf("%v of %d rounds, want 2 of 5", ratio, rounds)
	}
	add(5, 9, 1, 90)
	if ratio, rounds := r.Ratio(a, b); ratio != 2 || rounds != 5 {
		t.Errorf("with a noisy round: %v of %d rounds, want 2 of 5", ratio, rounds)
	}
	r.Samples = r.Samples[3*3:] // rounds 3, 4 and the noisy one
	if ratio, rounds := r.Ratio(a, b); ratio != 2 || rounds != 3 {
		t.Errorf("too few quiet rounds: %v of %d rounds, want 2 of 3", ratio, rounds)
	}
}

// TestDifferenceIsOfRounds: the medians, 300 and 110, differ by more.
func TestDifferenceIsOfRounds(t *testing.T) {
	a, b := Key{Case: "error", Library: "l"}, Key{Case: "message", Library: "l"}
	r := new(Results)
	for i, pair := range [][2]float64{{130, 100}, {140, 105}, {300, 110}, {310, 270}, {320, 300}} {
		r.Samples = append(r.Samples,
			Sample{Case: "error", Library: "l", Round: i, NsPerOp: pair[0]},
			Sample{Case: "message", Library: "l", Round: i, NsPerOp: pair[1]})
	}
	if ns, rounds := r.Difference(a, b); ns != 35 || rounds != 5 {
		t.Errorf("%v ns of %d rounds, want 35 of 5", ns, rounds)
	}
}

func TestSave(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "results.json")
	r := NewResults("kind", 2)
	r.Samples = []Sample{{Case: "<a>", Library: "l", Mode: "m", Ops: 3, NsPerOp: 1.5, Extra: map[string]float64{"lost_pct": 1}}, {Case: "b"}}
	if err := Save(path, r); err != nil {
		t.Fatal(err)
	}
	if back, err := Load[Results](path, "kind"); err != nil || !reflect.DeepEqual(back, r) {
		t.Errorf("read back %+v, %v, want %+v", back, err, r)
	}
	if _, err := Load[Results](path, "other"); err == nil {
		t.Error("results of another kind were taken")
	}
	for want, v := range map[string]any{
		"{\"a\":[\n{\"b\":1},\n{\"b\":2}]}\n": map[string]any{"a": []map[string]int{{"b": 1}, {"b": 2}}},
		"{\"a\":\"[{},{}]\",\"b\":[{}]}\n":    map[string]any{"a": "[{},{}]", "b": []struct{}{{}}},
	} {
		if err := Save(path, v); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%v\ngot  %s\nwant %s", err, got, want)
		}
	}
}

func TestMedian(t *testing.T) {
	for want, values := range map[float64][]float64{2: {9, 1, 2}, 1.5: {2, 1}, 0: nil} {
		if got := Median(values); got != want {
			t.Errorf("Median(%v) = %v, want %v", values, got, want)
		}
	}
}
