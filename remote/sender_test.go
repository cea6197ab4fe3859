package remote

import (
	"testing"
	"time"
)

func TestRetryWait(t *testing.T) {
	for attempt, most := range map[int]time.Duration{0: 100 * time.Millisecond, 1: 200 * time.Millisecond, 5: 3200 * time.Millisecond, 6: 5 * time.Second, 1000: 5 * time.Second} {
		seen := map[time.Duration]bool{}
		for range 100 {
			d := retryWait(attempt, 0)
			if d < most/2 || d > most {
				t.Fatalf("attempt %d waits %v, want from half of %v to it", attempt, d, most)
			}
			seen[d] = true
			if d := retryWait(attempt, 7*time.Second); d < 7*time.Second || d > 7*time.Second*11/10+1 {
				t.Fatalf("attempt %d waits %v where the peer asked for 7 s", attempt, d)
			}
			if d := retryWait(attempt, 1); d < most/2 {
				t.Fatalf("attempt %d waits %v where the peer asked for next to nothing", attempt, d)
			}
		}
		if len(seen) < 10 {
			t.Errorf("attempt %d: %d different waits of 100", attempt, len(seen))
		}
	}
}
