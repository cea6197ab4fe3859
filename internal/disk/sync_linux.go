package disk

import (
	"io/fs"
	"syscall"
)

// Sync is fdatasync(2): the bytes and the size, not the times.
func (f *realFile) Sync() error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var errno error
	if err := raw.Control(func(fd uintptr) {
		for {
			if errno = syscall.Fdatasync(int(fd)); errno != syscall.EINTR {
				return
			}
		}
	}); err != nil {
		return err
	}
	if errno != nil {
		return &fs.PathError{Op: "fdatasync", Path: f.Name(), Err: errno}
	}
	return nil
}
