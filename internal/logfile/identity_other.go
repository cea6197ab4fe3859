//go:build !unix && !windows

package logfile

import (
	"errors"
	"os"
)

// Identity is not to be had on this system.
func Identity(*os.File) (volume, inode uint64, err error) { return 0, 0, errors.ErrUnsupported }
