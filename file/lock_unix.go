//go:build unix && !solaris && !illumos && !aix

package file

import (
	"errors"
	"os"
	"syscall"
)

// A File holds a flock(2) of its current file: a shared one, or with
// Options.Mode Direct alone. Who packs or removes a rotated one takes it alone
// for that time. So no process, this one included,
// loses what another is still writing.

// lockNow takes the lock that says: I may write to f. It reports false if
// another holds f alone.
func lockNow(f *os.File) bool {
	return !errors.Is(flock(f, syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// lockAlone reports whether nobody writes to f. Where locks do not work, as on
// some network file systems, it reports true.
func lockAlone(f *os.File) bool {
	return !errors.Is(flock(f, syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// unlock takes both locks back.
func unlock(f *os.File) { flock(f, syscall.LOCK_UN) }

func flock(f *os.File, how int) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var errno error
	err = raw.Control(func(fd uintptr) {
		for {
			if errno = syscall.Flock(int(fd), how); errno != syscall.EINTR {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	return errno
}
