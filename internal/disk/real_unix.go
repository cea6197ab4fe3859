//go:build unix

package disk

import (
	"os"
	"syscall"
)

var openFile = os.OpenFile

const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// setBlocking takes back O_NONBLOCK, which is for the open alone.
func setBlocking(f *os.File) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var setErr error
	err = c.Control(func(fd uintptr) { setErr = syscall.SetNonblock(int(fd), false) })
	if err == nil {
		err = setErr
	}
	return err
}
