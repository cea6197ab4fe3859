//go:build unix

package file

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// broken are the errors after which a file is left for a new one.
var broken = []error{
	syscall.EIO, syscall.EFBIG, syscall.EROFS, syscall.ESTALE, syscall.ENODEV, syscall.ENXIO, syscall.EBADF, syscall.EBADMSG,
	syscall.ENOTCONN, // a file system in user space whose process has ended
}

// nonblock makes opening a named pipe without a reader fail and not wait.
const nonblock = syscall.O_NONBLOCK

// isUnread reports whether err is the error of opening a pipe without a reader.
func isUnread(err error) bool { return errors.Is(err, syscall.ENXIO) }

func keepOwner(f *os.File, old fs.FileInfo) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	was, ok1 := old.Sys().(*syscall.Stat_t)
	is, ok2 := info.Sys().(*syscall.Stat_t)
	if !ok1 || !ok2 || is.Uid == was.Uid && is.Gid == was.Gid {
		return nil
	}
	return f.Chown(int(was.Uid), int(was.Gid))
}
