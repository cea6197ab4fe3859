package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/rollway/rollway/internal/disk"
)

// lockFile is locked by the process that has the journal open.
const (
	lockFile = "LOCK"
	lockMode = 0o640
)

func lockFolder(fsys disk.FS, dir string) (io.Closer, error) {
	lock, err := fsys.Lock(filepath.Join(dir, lockFile), lockMode)
	switch {
	case errors.Is(err, disk.ErrLocked):
		return nil, fmt.Errorf("open journal: folder %s is in use by another process; stop it or choose another folder: %w", dir, err)
	case err != nil:
		return nil, fmt.Errorf("open journal: folder %s must be writable: %w", dir, err)
	}
	return lock, nil
}

// InUse reports whether a process has the journal in dir open. A folder that is not
// there is an error, one without a journal is not.
func InUse(dir string) (bool, error) {
	if _, err := os.Stat(dir); err != nil {
		return false, err
	}
	name := filepath.Join(dir, lockFile)
	if _, err := os.Stat(name); errors.Is(err, os.ErrNotExist) {
		return false, nil // to lock it would make it
	}
	lock, err := disk.Real{}.Lock(name, lockMode)
	if errors.Is(err, disk.ErrLocked) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, lock.Close()
}
