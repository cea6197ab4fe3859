package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"unsafe"
)

// openFile opens through an os.Root because that shares the file for deletion,
// which os.OpenFile does not: without it no open file can be renamed.
func openFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	root, err := os.OpenRoot(filepath.Dir(name))
	if err != nil {
		return nil, err
	}
	f, err := root.OpenFile(filepath.Base(name), flag, perm)
	return f, errors.Join(err, root.Close())
}

const noFollow = 0

func setBlocking(*os.File) error { return nil }

var lockFileEx = syscall.NewLazyDLL("kernel32.dll").NewProc("LockFileEx")

// unlockFile leaves the lock to the closing of the file, which no child has.
func unlockFile(*os.File) {}

// TryLock takes the exclusive lock of f, or fails with ErrLocked.
func TryLock(f *os.File) error {
	const (
		failImmediately = 1
		exclusive       = 2
		errLockHeld     = syscall.Errno(33) // ERROR_LOCK_VIOLATION
	)
	var at syscall.Overlapped
	ok, _, errno := lockFileEx.Call(f.Fd(), failImmediately|exclusive, 0, 1, 0, uintptr(unsafe.Pointer(&at)))
	switch {
	case ok != 0:
		return nil
	case errno == errLockHeld || errno == syscall.ERROR_IO_PENDING:
		return ErrLocked
	}
	return errno
}
