//go:build unix && !solaris && !illumos && !aix

package disk

import (
	"os"
	"syscall"
)

// TryLock takes the exclusive lock of f, or fails with ErrLocked.
func TryLock(f *os.File) error {
	for {
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err {
		case syscall.EINTR:
		case syscall.EWOULDBLOCK:
			return ErrLocked
		default:
			return err
		}
	}
}

// unlockFile releases the lock, also for descriptors of the file that share it.
func unlockFile(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
