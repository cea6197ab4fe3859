// Package pace waits for a moment more exactly than the runtime's timers do.
package pace

import (
	"runtime"
	"time"
)

// MaxSpin is how long before a due time a goroutine that has a processor to
// itself stops sleeping.
const MaxSpin = 30 * time.Microsecond

// SpinOf is how long each of several goroutines spins that wait once in a period:
// MaxSpin, or less where all of them would take more than a quarter of the
// processors, so that spinning leaves room for the work that is measured.
func SpinOf(goroutines int, period time.Duration) time.Duration {
	return min(MaxSpin, period*time.Duration(runtime.GOMAXPROCS(0))/time.Duration(4*goroutines))
}

// WaitUntil returns when due has passed since base: it sleeps for most of the
// time, as a program does, and spins from then on, up to twice as long.
func (a *Alarm) WaitUntil(base time.Time, due, spin time.Duration) {
	for {
		left := due - time.Since(base)
		switch {
		case left <= 0:
			return
		case left > 2*spin:
			a.sleep(left - spin)
		}
	}
}

// SleepUntil is WaitUntil without spinning: it takes no processor from others
// and is later by what the kernel needs to wake it up.
func (a *Alarm) SleepUntil(base time.Time, due time.Duration) {
	for {
		left := due - time.Since(base)
		if left <= 0 {
			return
		}
		a.sleep(left)
	}
}
