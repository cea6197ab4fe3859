//go:build unix

package segment

import "syscall"

// broken are the errors after which a file is left for a new one.
var broken = append([]error{
	syscall.EIO, syscall.EFBIG, syscall.EROFS, syscall.ESTALE, syscall.ENODEV, syscall.ENXIO, syscall.EBADF,
	syscall.ENOTCONN, // a file system in user space whose program has ended
}, corrupt...)

var errQuota error = syscall.EDQUOT
