// Package pace waits for a moment more exactly than the runtime's timers do.
// The goroutine is to be locked to its thread.
package pace

import "time"

// spin is how long before a due time WaitUntil stops sleeping.
const spin = 30 * time.Microsecond

// WaitUntil returns when due has passed since base: it sleeps for most of the
// time, as a program does, and spins for the rest.
func WaitUntil(base time.Time, due time.Duration) {
	for {
		left := due - time.Since(base)
		switch {
		case left <= 0:
			return
		case left > 2*spin:
			sleep(left - spin)
		}
	}
}

// SleepUntil is WaitUntil without spinning: it takes no processor from others
// and is later by what the kernel needs to wake it up.
func SleepUntil(base time.Time, due time.Duration) {
	for {
		left := due - time.Since(base)
		if left <= 0 {
			return
		}
		sleep(left)
	}
}
