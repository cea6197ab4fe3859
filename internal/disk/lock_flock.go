//go:build unix && !solaris && !illumos && !aix

package disk

import (
	"os"
	"syscall"
)

// TryLock takes the lock of f, exclusive or shared, or fails with ErrLocked.
func TryLock(f *os.File, exclusive bool) error {
	how := syscall.LOCK_SH | syscall.LOCK_NB
	if exclusive {
		how = syscall.LOCK_EX | syscall.LOCK_NB
	}
	for {
		switch err := syscall.Flock(int(f.Fd()), how); err {
		case syscall.EINTR:
		case syscall.EWOULDBLOCK:
			return ErrLocked
		default:
			return err
		}
	}
}

// Unlock releases the lock, also for descriptors of the file that share it.
func Unlock(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
