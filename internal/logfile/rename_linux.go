package logfile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// RenameNew renames a file and fails with fs.ErrExist where the new name is
// taken.
func RenameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOTSUP):
		return renameReserved(from, to) // NFS, some FUSE
	}
	return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
}
