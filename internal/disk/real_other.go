//go:build !windows && !unix

package disk

import (
	"errors"
	"os"
	"syscall"
)

// IsFull reports whether err means that the disk has no room, for now.
func IsFull(err error) bool { return errors.Is(err, syscall.ENOSPC) }

var openFile = os.OpenFile
