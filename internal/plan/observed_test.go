package plan_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/internal/plan"
	"github.com/rollway/rollway/line"
	"github.com/rollway/rollway/slab"
)

// TestObservedWorkload drives a real Writer in virtual time and wants back what
// it was driven with.
func TestObservedWorkload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dst := &staller{latency: 2 * time.Millisecond, stall: 70 * time.Millisecond, offset: time.Millisecond, nth: 3, stalls: 1}
		w, err := slab.New(dst, slab.Options{SlabSize: 4 << 10, SlabCount: 32, Full: slab.Block})
		if err != nil {
			t.Fatal(err)
		}
		put := func(text string) {
			t.Helper()
			if _, err := w.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		write := func(n int) {
			for i := range n {
				size := 200
				if i%2 == 1 {
					size = 400
				}
				put(strings.Repeat("x", size-1) + "\n")
				time.Sleep(time.Millisecond)
			}
		}
		put(strings.Repeat("x", 999) + "\n") // the longest
		write(1000)                          // the stall is in here
		before := w.Stats()
		write(5000)
		after := w.Stats()

		got, err := plan.Observed(before, after, 5*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		want := plan.Workload{Rate: 1000, LineSize: 300, LineSizeP99: 1000, WriteLatency: 2 * time.Millisecond, Spike: 72 * time.Millisecond}
		if got != want {
			t.Errorf("observed %+v\nwant     %+v", got, want)
		}
		c, err := plan.Choose(got)
		if err != nil || c.Err() != nil {
			t.Errorf("a plan for it: %v, %v", err, c.Err())
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}

		// Since the start, the stall is part of the mean.
		got, err = plan.Observed(slab.Stats{}, w.Stats(), 6*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		mean := 2*time.Millisecond + 70*time.Millisecond/time.Duration(w.Stats().Writes)
		if d := got.WriteLatency - mean; d < -1 || d > 1 {
			t.Errorf("a write took %v in the mean, want %v", got.WriteLatency, mean)
		}
	})
}

func TestObservedDetails(t *testing.T) {
	before := slab.Stats{Ledger: line.Ledger{Accepted: 100}, BytesAccepted: 10_000, Writes: 10, WriteTime: 20 * time.Millisecond, WriteMax: 5 * time.Millisecond, LineMax: 100}
	after := before
	after.Accepted, after.BytesAccepted = 110, 11_000
	for name, tt := range map[string]struct {
		change func(s *slab.Stats)
		want   plan.Workload
	}{
		"no write in between":    {func(*slab.Stats) {}, plan.Workload{Rate: 5, LineSize: 100, LineSizeP99: 100, WriteLatency: 2 * time.Millisecond, Spike: 5 * time.Millisecond}},
		"writes of no time":      {func(s *slab.Stats) { s.Writes++ }, plan.Workload{Rate: 5, LineSize: 100, LineSizeP99: 100, WriteLatency: 1, Spike: 5 * time.Millisecond}},
		"a mean that is rounded": {func(s *slab.Stats) { s.BytesAccepted-- }, plan.Workload{Rate: 5, LineSize: 100, LineSizeP99: 101, WriteLatency: 2 * time.Millisecond, Spike: 5 * time.Millisecond}},
		"a longest line unknown": {func(s *slab.Stats) { s.LineMax = 0 }, plan.Workload{Rate: 5, LineSize: 100, LineSizeP99: 100, WriteLatency: 2 * time.Millisecond, Spike: 5 * time.Millisecond}},
	} {
		s := after
		tt.change(&s)
		if got, err := plan.Observed(before, s, 2*time.Second); err != nil || got != tt.want {
			t.Errorf("%s: %+v, %v\nwant %+v", name, got, err, tt.want)
		}
	}
	for want, f := range map[string]func() (plan.Workload, error){
		"is 0s, it must be more than 0":                 func() (plan.Workload, error) { return plan.Observed(before, after, 0) },
		"no line came in 1s":                            func() (plan.Workload, error) { return plan.Observed(before, before, time.Second) },
		"the counters went back, from 110 lines to 100": func() (plan.Workload, error) { return plan.Observed(after, before, time.Second) },
		"no Write of the destination has returned yet": func() (plan.Workload, error) {
			return plan.Observed(slab.Stats{}, slab.Stats{Ledger: line.Ledger{Accepted: 1}}, time.Second)
		},
		"these are two Writers, or the process was started": func() (plan.Workload, error) {
			s := after
			s.Writes = 1
			return plan.Observed(before, s, time.Second)
		},
	} {
		w, err := f()
		if w != (plan.Workload{}) || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %+v, %v, want an error with %q", w, err, want)
		}
	}
}
