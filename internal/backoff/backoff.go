// Package backoff returns how long to wait before a failed operation is tried again.
package backoff

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// Wait returns the wait after a failure that follows failures others: first, doubled for
// each of them, up to longest, and shortened at random by up to half, so that clients
// that failed together do not retry together.
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

// Asked returns how long err asks to wait by a method RetryAfter, 0 if it does not.
func Asked(err error) time.Duration {
	var asks interface{ RetryAfter() time.Duration }
	if errors.As(err, &asks) {
		return max(asks.RetryAfter(), 0)
	}
	return 0
}

// Sleep waits for d. It returns false if ctx ends before.
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
