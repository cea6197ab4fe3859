package direct

import (
	"os"

	"golang.org/x/sys/unix"
)

// Bypass sets whether f bypasses the cache. Any length and offset will do. It is vetted for
// darwin and has not been run there.
func Bypass(f *os.File, on bool) error {
	arg := 0
	if on {
		arg = 1
	}
	_, err := unix.FcntlInt(f.Fd(), unix.F_NOCACHE, arg)
	return os.NewSyscallError("fcntl", err)
}
