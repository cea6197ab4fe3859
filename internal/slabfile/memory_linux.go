package slabfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// allocate allocates the first n bytes of f, so that no store into them can fail, and
// keeps what is there.
func allocate(f *os.File, n int64) error {
	err := error(unix.EINTR)
	for err == unix.EINTR {
		err = unix.Fallocate(int(f.Fd()), 0, 0, n)
	}
	if err == unix.EOPNOTSUPP || err == unix.ENOSYS {
		return fill(f, n)
	}
	return os.NewSyscallError("fallocate", err)
}

// populate makes all pages of mem present and writable, so that no store waits for one.
// It reports false before Linux 5.14.
func populate(mem []byte) bool { return unix.Madvise(mem, unix.MADV_POPULATE_WRITE) == nil }

// fileSystem reports whether f is on a network file system, or in memory.
func fileSystem(f *os.File) (remote, memory bool) {
	var st unix.Statfs_t
	if unix.Fstatfs(int(f.Fd()), &st) == nil {
		switch uint32(st.Type) {
		case unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC:
			remote = true
		case unix.TMPFS_MAGIC, unix.RAMFS_MAGIC:
			memory = true
		}
	}
	return remote, memory
}
