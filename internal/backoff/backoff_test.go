package backoff

import (
	"math"
	"testing"
	"time"
)

func TestWait(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		failures       int
		first, longest time.Duration
		most           time.Duration
	}{
		{0, 10 * ms, 5 * time.Second, 10 * ms},
		{1, 10 * ms, 5 * time.Second, 20 * ms},
		{8, 10 * ms, 5 * time.Second, 2560 * ms},
		{9, 10 * ms, 5 * time.Second, 5 * time.Second},
		{math.MaxInt, 10 * ms, 5 * time.Second, 5 * time.Second},
		{0, time.Second, time.Second, time.Second},
		{7, time.Second, time.Second, time.Second},
		{1, 1, math.MaxInt64, 2},
		{99, 1, math.MaxInt64, math.MaxInt64},
	} {
		for range 100 {
			if d := Wait(tt.failures, tt.first, tt.longest); d > tt.most || d < tt.most-tt.most/2-1 {
				t.Fatalf("%d failures, %v to %v: %v, want %v or up to a half less", tt.failures, tt.first, tt.longest, d, tt.most)
			}
		}
	}
}
