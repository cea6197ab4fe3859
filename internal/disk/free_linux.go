package disk

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Unused reports whether f, open for writing, is gone once it is closed: it has
// no name left and nobody else has it open or mapped. The system gives a write
// lease on a file only to who alone has it open. Where it gives none to anybody,
// known is false.
func Unused(f *os.File) (unused, known bool) {
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
