package segment

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// unname removes a file and returns it if it is large and nobody else has it:
// under another name, open or mapped. Else f is nil.
func unname(name string) (f *os.File, err error) {
	f, openErr := os.OpenFile(name, os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	err = os.Remove(name)
	if openErr != nil {
		return nil, err
	}
	if err != nil || !unused(f) {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// unused reports whether f is large and will be gone when it is closed. The
// system gives a write lease on a file only to who alone has it open.
func unused(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Size() <= freePiece {
		return false
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Nlink > 0 {
		return false
	}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		return false
	}
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
	return err == nil
}
