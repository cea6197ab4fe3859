//go:build unix

package logfile

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// Identity returns the numbers that identify a file among all that exist: the device and
// the inode number.
func Identity(f *os.File) (volume, inode uint64, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, 0, err
	}
	return IdentityAt(f.Name(), info)
}

// IdentityAt is Identity of the file at path, which info describes.
func IdentityAt(_ string, info fs.FileInfo) (volume, inode uint64, err error) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, errors.ErrUnsupported
	}
	return uint64(st.Dev), uint64(st.Ino), nil // types differ by system
}
