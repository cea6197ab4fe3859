package rollway

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestClockFollowsAStep moves the wall clock under a clock by changing what it
// remembers of it: within renewEvery it must be right again.
func TestClockFollowsAStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, step := range []time.Duration{time.Hour, -time.Hour} {
			c := newClock()
			c.offset.Add(int64(step)) // as if the wall clock had been stepped by -step since
			time.Sleep(renewEvery)
			if got, want := c.now(), time.Now().UnixNano(); got != want {
				t.Errorf("after a step of %v the clock is off by %v", -step, time.Duration(got-want))
			}
		}
	})
}

// TestClockOutsideItsBubble uses a clock in a bubble that it was not made in,
// as a program's global Logger is in a test.
func TestClockOutsideItsBubble(t *testing.T) {
	c := newClock()
	synctest.Test(t, func(t *testing.T) {
		for range 3 {
			if got, want := c.now(), time.Now().UnixNano(); got != want {
				t.Errorf("the clock is off by %v", time.Duration(got-want))
			}
			time.Sleep(time.Second)
		}
	})
	// Between two readings a thread may be held up, but not always.
	var off time.Duration
	for range 50 {
		before, got := time.Now().UnixNano(), c.now()
		if off = time.Duration(max(before-got, got-time.Now().UnixNano())); off <= time.Millisecond {
			return
		}
		time.Sleep(renewEvery)
	}
	t.Errorf("back outside the clock is off by %v", off)
}

func TestClockIsNearTimeNow(t *testing.T) {
	// A virtual machine's wall clock may be stepped by its host, which shows up to
	// renewEvery later, and a thread may be held up between two readings. Both
	// must be the exception.
	late := uint64(0)
	for range 50 {
		if late = readingsOff(newClock(), time.Millisecond); late <= 400 {
			return
		}
	}
	t.Errorf("%d readings are more than 1 ms off, and hardly fewer in 50 tries", late)
}

// readingsOff returns how many readings of c within 100 ms, from four
// goroutines, are more than limit off.
func readingsOff(c *clock, limit time.Duration) uint64 {
	var late atomic.Uint64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for end := time.Now().Add(100 * time.Millisecond); time.Now().Before(end); {
				before := time.Now().UnixNano()
				got := c.now()
				after := time.Now().UnixNano()
				if got < before-int64(limit) || got > after+int64(limit) {
					late.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return late.Load()
}
