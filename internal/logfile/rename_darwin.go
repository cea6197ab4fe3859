package logfile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// RenameNew renames a file and fails with fs.ErrExist where the new name is
// taken.
func RenameNew(from, to string) error {
	err := unix.RenamexNp(from, to, unix.RENAME_EXCL)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP):
		return renameReserved(from, to)
	}
	return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
}
