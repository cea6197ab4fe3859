//go:build !windows && !unix

package disk

import (
	"errors"
	"os"
	"syscall"
)

// IsFull reports whether err means that the disk has no room, for now.
func IsFull(err error) bool { return errors.Is(err, syscall.ENOSPC) }

// IsExhausted reports whether err says nothing about the file: the disk has no room, for now.
func IsExhausted(err error) bool { return IsFull(err) }

var openFile = os.OpenFile
