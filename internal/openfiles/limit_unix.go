//go:build unix

package openfiles

import (
	"math"

	"golang.org/x/sys/unix"
)

// Limit is how many descriptors the process may have; negative: any number.
func Limit() int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil || limit.Cur > math.MaxInt32 {
		return -1
	}
	return int(limit.Cur)
}
