//go:build !unix && !windows

package logfile

import (
	"errors"
	"io/fs"
	"os"
)

// Identity is not supported on this system.
func Identity(*os.File) (volume, inode uint64, err error) { return 0, 0, errors.ErrUnsupported }

// IdentityAt is not supported on this system.
func IdentityAt(string, fs.FileInfo) (volume, inode uint64, err error) {
	return 0, 0, errors.ErrUnsupported
}
