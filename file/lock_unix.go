//go:build unix && !solaris && !illumos && !aix

package file

import (
	"os"
	"syscall"
)

// A File holds a flock(2) of its current file: shared, or exclusive with
// Options.Mode Direct. Maintenance holds an exclusive one while it compresses or
// removes a rotated file. So no process, this one included, loses what another
// still writes.

// lockShared takes the shared lock of a writer of f. It reports false if another
// process has the exclusive lock.
func lockShared(f *os.File) bool { return flock(f, syscall.LOCK_SH|syscall.LOCK_NB) }

// lockExclusive takes the exclusive lock. It returns false if another process writes to
// f, and true where locks do not work, as on some network file systems.
func lockExclusive(f *os.File) bool { return flock(f, syscall.LOCK_EX|syscall.LOCK_NB) }

// unlock releases either lock.
func unlock(f *os.File) { flock(f, syscall.LOCK_UN) }

func flock(f *os.File, how int) bool {
	err := syscall.Flock(int(f.Fd()), how)
	for err == syscall.EINTR {
		err = syscall.Flock(int(f.Fd()), how)
	}
	return err != syscall.EWOULDBLOCK
}
