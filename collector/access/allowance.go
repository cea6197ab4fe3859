package access

import (
	"math"
	"sync"
	"time"
)

// allowance is a token bucket for bytes and one for events, each holding what
// is good for one second, at least one request of any size: what a request
// takes beyond what is left is owed, and until that is paid back there is
// nothing to be had.
type allowance struct {
	bytes, events float64 // per second; 0: no limit

	mu                    sync.Mutex
	at                    time.Time // guarded by mu; when the balances were true
	bytesLeft, eventsLeft float64   // guarded by mu; negative if owed
}

// wait returns how long it takes until neither is owed.
func (a *allowance) wait(now time.Time) time.Duration {
	if a.bytes == 0 && a.events == 0 {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refillLocked(now)
	return max(owed(a.bytesLeft, a.bytes), owed(a.eventsLeft, a.events))
}

func owed(left, rate float64) time.Duration {
	if rate == 0 || left >= 0 {
		return 0
	}
	return time.Duration(math.Ceil(-left / rate * float64(time.Second)))
}

func (a *allowance) charge(now time.Time, bytes, events int) {
	if a.bytes == 0 && a.events == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refillLocked(now)
	a.bytesLeft -= float64(bytes)
	a.eventsLeft -= float64(events)
}

func (a *allowance) refillLocked(now time.Time) {
	if a.at.IsZero() {
		a.at, a.bytesLeft, a.eventsLeft = now, a.bytes, a.events
		return
	}
	passed := now.Sub(a.at).Seconds()
	if passed <= 0 { // the clock was set back, or another was faster
		return
	}
	a.at = now
	a.bytesLeft = min(a.bytesLeft+passed*a.bytes, a.bytes)
	a.eventsLeft = min(a.eventsLeft+passed*a.events, a.events)
}
