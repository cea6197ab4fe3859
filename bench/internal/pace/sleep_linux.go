package pace

import (
	"time"

	"golang.org/x/sys/unix"
)

// SharpenTimers makes sleeps of this thread end when they are due and not up
// to 50 µs later. Where that is refused they are as late as ever, which a
// producer that writes nothing shows.
func SharpenTimers() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) }

// sleep is the kernel's. The runtime's rounds up to milliseconds when nothing
// else runs.
func sleep(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&ts, nil) // one that ends early is repeated
}
