//go:build !windows

package journal

import (
	"errors"
	"syscall"
)

// noRoom reports whether err is one of the system's ways to say that the disk,
// a quota or the largest file size is reached.
func noRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}
