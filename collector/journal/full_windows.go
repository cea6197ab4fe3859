package journal

import (
	"errors"
	"syscall"
)

// noRoom reports whether err is one of the system's ways to say that the disk,
// a quota or the largest file size is reached.
func noRoom(err error) bool {
	const (
		handleDiskFull = syscall.Errno(39)
		diskFull       = syscall.Errno(112)
		diskQuota      = syscall.Errno(1295)
	)
	return errors.Is(err, diskFull) || errors.Is(err, handleDiskFull) || errors.Is(err, diskQuota)
}
