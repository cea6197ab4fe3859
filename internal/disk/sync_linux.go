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
	errno := error(syscall.EINTR)
	if raw.Control(func(fd uintptr) {
		for errno == syscall.EINTR {
			errno = syscall.Fdatasync(int(fd))
		}
	}) != nil {
		errno = fs.ErrClosed // Control fails for no other reason
	}
	if errno != nil {
		return &fs.PathError{Op: "fdatasync", Path: f.Name(), Err: errno}
	}
	return nil
}
