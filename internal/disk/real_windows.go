package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"unsafe"
)

// IsFull reports whether err means that the disk or a quota has no room, for now.
func IsFull(err error) bool { return isAny(err, syscall.ENOSPC, 39, 112, 1295) } // ERROR_HANDLE_DISK_FULL, ERROR_DISK_FULL, ERROR_DISK_QUOTA_EXCEEDED

// IsExhausted reports whether err says nothing about the file: the disk, the process or the
// system has no room, no handle or no memory left, for now.
func IsExhausted(err error) bool {
	return IsFull(err) || isAny(err, syscall.EMFILE, syscall.ENOMEM, 4, 8, 14) // ERROR_TOO_MANY_OPEN_FILES, ERROR_NOT_ENOUGH_MEMORY, ERROR_OUTOFMEMORY
}

func isAny(err error, list ...syscall.Errno) bool {
	return slices.ContainsFunc(list, func(e syscall.Errno) bool { return errors.Is(err, e) })
}

// openFile opens through an os.Root, which shares the file for deletion: otherwise no open
// file could be renamed.
func openFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	root, err := os.OpenRoot(filepath.Dir(name))
	if err != nil {
		return nil, err
	}
	f, err := root.OpenFile(filepath.Base(name), flag, perm)
	return f, errors.Join(err, root.Close())
}

var lockFileEx = syscall.NewLazyDLL("kernel32.dll").NewProc("LockFileEx")

// Unlock leaves the lock to the closing of the file, which no child has.
func Unlock(*os.File) {}

// TryLock takes the lock of f, exclusive or shared, or fails with ErrLocked.
func TryLock(f *os.File, exclusive bool) error {
	const errLockHeld = syscall.Errno(33) // ERROR_LOCK_VIOLATION
	flags := uintptr(1)                   // LOCKFILE_FAIL_IMMEDIATELY
	if exclusive {
		flags |= 2 // LOCKFILE_EXCLUSIVE_LOCK
	}
	var at syscall.Overlapped
	ok, _, errno := lockFileEx.Call(f.Fd(), flags, 0, 1, 0, uintptr(unsafe.Pointer(&at)))
	switch {
	case ok != 0:
		return nil
	case errno == errLockHeld || errno == syscall.ERROR_IO_PENDING:
		return ErrLocked
	}
	return errno
}
