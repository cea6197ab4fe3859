package disk

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// forget is advice: an error does not matter.
func forget(f *os.File, off, n int64) {
	if raw, err := f.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.Fadvise(int(fd), off, n, unix.FADV_DONTNEED) })
	}
}

// unused reports whether closing f, which is open for writing, frees it: it has no name and
// is not open or mapped elsewhere, or the system would grant no write lease on it. Where
// there are no leases, known is false.
func unused(f *os.File) (unused, known bool) {
	info, err := f.Stat()
	if err != nil {
		return false, false
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Nlink > 0 {
		return false, ok
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return false, false
	}
	var lease error
	err = raw.Control(func(fd uintptr) {
		if _, lease = unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_WRLCK); lease == nil {
			_, lease = unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_UNLCK)
		}
	})
	return err == nil && lease == nil, err == nil && (lease == nil || lease == unix.EAGAIN)
}
