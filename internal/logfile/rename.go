package logfile

import (
	"errors"
	"os"
	"syscall"
)

// RenameNew renames a file and fails with fs.ErrExist if the new name is taken.
func RenameNew(from, to string) error {
	err := renameExclusive(from, to)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL): // NFS, some FUSE
		return renameReserved(from, to)
	}
	return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
}

// renameReserved is RenameNew where the system has no such call: it reserves the new name
// with an empty file. If a crash leaves that, the next Open removes it.
func renameReserved(from, to string) error {
	place, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	place.Close()
	if err := os.Rename(from, to); err != nil {
		return errors.Join(err, os.Remove(to))
	}
	return nil
}
