package backoff

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
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

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begin := time.Now()
		if !Sleep(ctx, 59*time.Second) || time.Since(begin) != 59*time.Second {
			t.Errorf("slept %v of 59 s", time.Since(begin))
		}
		if Sleep(ctx, 59*time.Second) || time.Since(begin) != time.Minute {
			t.Errorf("slept on until %v", time.Since(begin))
		}
	})
}
