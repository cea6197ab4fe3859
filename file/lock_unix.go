//go:build unix && !solaris && !illumos && !aix

package file

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// A File holds a shared flock(2) of its current file, and who packs or removes
// a rotated one takes it alone for that time. So no process, this one included,
// loses what another is still writing.

// lockShared takes the lock that says: I may write to f.
// It waits a moment for another process that looks at the end of the same file.
func lockShared(f *os.File) {
	for range 100 {
		if lockNow(f) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// lockNow is lockShared without the wait. It reports false if another holds f
// alone.
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
