//go:build !unix

package file

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

var broken = []error{syscall.EIO}

func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) }

const nonblock = 0

func isUnread(error) bool { return false }

// keepOwner does nothing: on Windows a new file inherits from its folder.
func keepOwner(*os.File, fs.FileInfo) error { return nil }
