//go:build !unix

package file

import (
	"io/fs"
	"os"
	"syscall"
)

var broken = []error{syscall.EIO}

const nonblock = 0

func isUnread(error) bool { return false }

// keepOwner does nothing: on Windows a new file inherits from its folder.
func keepOwner(*os.File, fs.FileInfo) error { return nil }
