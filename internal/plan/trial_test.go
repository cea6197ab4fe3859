package plan_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/internal/plan"
	"github.com/rollway/rollway/slab"
)

// staller is a destination whose Write takes latency, and that makes no
// progress during its stalls. The first stall begins offset after the beginning
// of Write number nth, the second gap after the end of the first.
type staller struct {
	latency, stall, offset, gap time.Duration
	nth, stalls                 int

	mu     sync.Mutex
	writes int
	begins []time.Time // of the stalls, in order, once they are known
}

func (d *staller) Write(p []byte) (int, error) {
	d.mu.Lock()
	now := time.Now()
	d.writes++
	if d.writes == d.nth {
		for i := range d.stalls {
			d.begins = append(d.begins, now.Add(d.offset+time.Duration(i)*(d.stall+d.gap)))
		}
	}
	left := d.latency // of this write, without stalls
	for _, begin := range d.begins {
		end := begin.Add(d.stall)
		if !now.Before(end) {
			continue
		}
		if before := begin.Sub(now); before > 0 {
			if before >= left {
				break
			}
			left -= before
		}
		now = end
	}
	now = now.Add(left)
	d.mu.Unlock()
	time.Sleep(time.Until(now))
	return len(p), nil
}

// phase tells whether the first stall has begun and whether all is over.
func (d *staller) phase() (begun, over bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.begins) == 0 {
		return false, false
	}
	last := d.begins[len(d.begins)-1].Add(d.stall + d.gap)
	return !time.Now().Before(d.begins[0]), time.Now().After(last)
}

// A trial is one run of a real Writer in virtual time.
type trial struct {
	w       plan.Workload
	o       slab.Options
	sizes   func() int // of the lines, up to w.LineSizeP99
	stall   time.Duration
	gap     time.Duration // before a second stall; 0: there is none
	nth     int
	offset  time.Duration
	workers int // producers
}

// run returns the longest time that a producer waited in a Write. The lines
// obey the arrival curve ρt + σ and use it to the full: until the stall they
// come with ρ and save up σ, then as soon as the curve allows.
func (tr *trial) run(t *testing.T) (longest time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		dst := &staller{latency: tr.w.WriteLatency, stall: tr.stall, offset: tr.offset, gap: tr.gap, nth: tr.nth, stalls: 1}
		if tr.gap > 0 {
			dst.stalls = 2
		}
		o := tr.o
		o.CloseTimeout = 24 * time.Hour
		o.Full = slab.Block
		w, err := slab.New(dst, o)
		if err != nil {
			t.Fatal(err)
		}
		var (
			mu     sync.Mutex
			rate   = tr.w.Rate * float64(tr.w.LineSize)
			burst  = float64(tr.w.LineSizeP99)
			start  = time.Now()
			sent   float64 // bytes of all lines that have a time
			lines  int
			limit  = start.Add(24 * time.Hour)
			wg     sync.WaitGroup
			buffer = make([]byte, tr.w.LineSizeP99)
		)
		for i := range buffer {
			buffer[i] = 'x'
		}
		// next returns a line and when to send it, or nil when the trial is over.
		next := func() ([]byte, time.Time) {
			mu.Lock()
			defer mu.Unlock()
			begun, over := dst.phase()
			if over || longest > 0 || time.Now().After(limit) {
				return nil, time.Time{}
			}
			size := tr.sizes()
			due := sent
			sent += float64(size)
			lines++
			if begun {
				due = max(0, sent-burst)
			}
			line := append([]byte(nil), buffer[:size]...)
			line[size-1] = '\n'
			return line, start.Add(time.Duration(math.Ceil(due / rate * 1e9)))
		}
		for range tr.workers {
			wg.Go(func() {
				for line, due := next(); line != nil; line, due = next() {
					time.Sleep(time.Until(due))
					before := time.Now()
					if n, err := w.Write(line); n != len(line) || err != nil {
						t.Errorf("Write = %d, %v", n, err)
					}
					took := time.Since(before)
					mu.Lock()
					longest = max(longest, took)
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if s := w.Stats(); int(s.Written) != lines || s.Accepted != s.Written || s.Pending != 0 {
			t.Errorf("%d lines sent, accepted %d, written %d, pending %d", lines, s.Accepted, s.Written, s.Pending)
		}
		if _, over := dst.phase(); !over && longest == 0 {
			t.Errorf("the stall did not come within a day: %d lines, %d writes", lines, dst.writes)
		}
	})
	return longest
}

func (tr *trial) String() string {
	return fmt.Sprintf("%+v\non %d slabs of %d bytes, flush interval %v: a stall of %v, %v after the beginning of write %d, again after %v; %d producers",
		tr.w, tr.o.SlabCount, tr.o.SlabSize, tr.o.FlushInterval, tr.stall, tr.offset, tr.nth, tr.gap, tr.workers)
}

// moments are offsets, from the beginning of a Write, at which a stall can
// begin: with the write, halfway, at its last moment, as it returns, and spread
// over the time until the slab after it is full.
func moments(r *rand.Rand, latency, fill time.Duration) []time.Duration {
	return []time.Duration{0, latency / 2, latency - 1, latency, fill - 1, within(r, fill), within(r, fill)}
}

func within(r *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(r.Float64() * float64(d))
}

// shapes returns a random way for lines to be as w allows, in slabs of slabSize.
func shapes(r *rand.Rand, w plan.Workload, slabSize int) func() int {
	longest := w.LineSizeP99
	if longest == w.LineSize {
		return wasteful(w, slabSize)
	}
	switch r.IntN(5) {
	case 0: // all as long as they may be
		return func() int { return longest }
	case 1: // anything
		return func() int { return 1 + r.IntN(longest) }
	case 2: // a long one among short ones
		short := 1 + longest/10
		return func() int {
			if r.IntN(8) == 0 {
				return longest
			}
			return short
		}
	case 3: // one size, so that each slab wastes the same
		size := longest - r.IntN(longest/2+1)
		return func() int { return size }
	}
	return wasteful(w, slabSize)
}

// wasteful returns the sizes that leave as much room unused as they can: a slab
// begins with a longest line and is filled until one byte too few for the next
// one is left.
func wasteful(w plan.Workload, slabSize int) func() int {
	longest := w.LineSizeP99
	if longest == w.LineSize {
		return func() int { return longest }
	}
	used := 0
	return func() int {
		size := longest
		if gap := slabSize - (longest - 1) - used; used > 0 && gap > 0 {
			size = min(gap, longest)
		} else {
			used = 0
		}
		used += size
		return size
	}
}

// logUniform returns a number between lo and hi that is as likely to be in one
// decade as in another.
func logUniform(r *rand.Rand, lo, hi float64) float64 {
	return lo * math.Pow(hi/lo, r.Float64())
}

// randomTrial returns a workload and slabs that sustain it. Few lines
// fill one, so that many can be tried.
func randomTrial(t *testing.T, r *rand.Rand) (trial, plan.Capacity) {
	t.Helper()
	for {
		w := plan.Workload{
			Rate:         logUniform(r, 20, 2e6),
			LineSize:     1 + r.IntN(400),
			WriteLatency: time.Duration(logUniform(r, 1e3, 1e8)),
		}
		w.LineSizeP99 = w.LineSize + int(logUniform(r, 1, float64(8*w.LineSize))) - 1
		o := slab.Options{
			SlabSize:      64 + w.LineSizeP99 + r.IntN(20*w.LineSize+4*w.LineSizeP99),
			SlabCount:     2 + r.IntN(9),
			FlushInterval: time.Duration(logUniform(r, 1e6, 3.6e12)),
		}
		c, err := plan.Evaluate(w, o.SlabSize, o.SlabCount)
		if err != nil {
			t.Fatal(err)
		}
		if c.Limit == plan.LimitThroughput {
			continue
		}
		// The ticker of an hour-long trial would make it a long one.
		if fill := float64(o.SlabSize) / c.Demand; fill*30/o.FlushInterval.Seconds() > 3000 {
			continue
		}
		return trial{w: w, o: o, workers: 1 + r.IntN(3)}, c
	}
}

// fillTime is how long lines take to fill one slab of c.
func fillTime(c plan.Capacity) time.Duration {
	return time.Duration(float64(c.SlabSize) / c.Demand * 1e9)
}

func trials() int {
	if testing.Short() {
		return 60
	}
	return 300
}

// enough fails a test that left out most of its workloads.
func enough(t *testing.T, tried int) {
	t.Helper()
	t.Logf("tried %d of %d workloads", tried, trials())
	if tried < trials()/2 {
		t.Error("too few of them")
	}
}

// seeded returns the random numbers of workload i.
func seeded(i int) *rand.Rand { return rand.New(rand.NewPCG(uint64(i), 1)) }
