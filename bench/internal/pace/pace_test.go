package pace

import (
	"runtime"
	"sync"
	"testing"
	"time"
)

// TestNeverEarly: many alarms at once, each for its own goroutine, some set for
// what is past.
func TestNeverEarly(t *testing.T) {
	var wg sync.WaitGroup
	for range 8 {
		alarm, err := NewAlarm()
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			defer alarm.Close()
			base := time.Now()
			for i := range 40 {
				due := time.Duration(i-5) * 200 * time.Microsecond
				if alarm.SleepUntil(base, due); time.Since(base) < due {
					t.Errorf("slept until %v of %v", time.Since(base), due)
				}
				due += 100 * time.Microsecond
				if alarm.WaitUntil(base, due, MaxSpin); time.Since(base) < due {
					t.Errorf("waited until %v of %v", time.Since(base), due)
				}
			}
		})
	}
	wg.Wait()
}

// TestSpinOf: spinning takes at most a quarter of the processors.
func TestSpinOf(t *testing.T) {
	if got := SpinOf(1, time.Hour); got != MaxSpin {
		t.Errorf("one goroutine spins for %v", got)
	}
	for _, n := range []int{1, 10, 1000} {
		if share := SpinOf(n, time.Millisecond) * time.Duration(n); share > 250*time.Microsecond*time.Duration(runtime.GOMAXPROCS(0)) {
			t.Errorf("%d goroutines spin for %v of each millisecond", n, share)
		}
	}
}
