// Package backoff says how long to wait before something that has failed is
// tried again.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// Wait returns the wait after so many failures before this one: first, twice as
// long each time, up to longest, shortened at random by up to a half, so that
// those who failed together do not come back together.
func Wait(failures int, first, longest time.Duration) time.Duration {
	d := first
	for range failures {
		if d >= longest/2 {
			d = longest
			break
		}
		d *= 2
	}
	return d - rand.N(d/2+1)
}

// Sleep waits for d; false: ctx ended before.
func Sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
