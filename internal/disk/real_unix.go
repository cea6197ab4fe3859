//go:build unix

package disk

import (
	"errors"
	"os"
	"syscall"
)

// IsFull reports whether err means that the disk or a quota has no room, for now.
func IsFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

var openFile = os.OpenFile

const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// setBlocking removes O_NONBLOCK, which is only for the open.
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
