//go:build unix

package slab

import (
	"time"

	"golang.org/x/sys/unix"
)

// shortSleep puts the thread to sleep, for 20 µs at first and 160 µs at last, and
// reports whether it did. It uses the system's sleep: the runtime's would advance the
// clock of a testing/synctest bubble.
func shortSleep(n int) bool {
	tv := unix.NsecToTimeval(int64(20 * time.Microsecond << min(n/4, 3)))
	_, err := unix.Select(0, nil, nil, nil, &tv)
	return err == nil
}
