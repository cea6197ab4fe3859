package disk

import "golang.org/x/sys/unix"

// alone reports whether nobody else has f open, if the file system tells: a
// write lease is given to a file's only user.
func (f *realFile) alone() (alone, known bool) {
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
	return lease == nil, err == nil && (lease == nil || lease == unix.EAGAIN)
}
