//go:build unix

package slab

import (
	"time"

	"golang.org/x/sys/unix"
)

// nap lets the thread sleep for 20 µs at first and up to 160, and reports
// whether it did. It is the system's sleep and not the runtime's: a wait for a
// lock must not move the clock of a testing/synctest bubble.
func nap(n int) bool {
	tv := unix.NsecToTimeval(int64(20 * time.Microsecond << min(n/4, 3)))
	_, err := unix.Select(0, nil, nil, nil, &tv)
	return err == nil
}
