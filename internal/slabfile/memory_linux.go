package slabfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// allocate gives the first n bytes of f blocks, so that no store into them can
// fail; what is there stays.
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

// populate makes all pages of mem present and writable, so that no store has to
// wait for one, and reports whether it could: from Linux 5.14 on.
func populate(mem []byte) bool { return unix.Madvise(mem, unix.MADV_POPULATE_WRITE) == nil }

// fileSystem tells whether that of f is a network's, and whether it is memory.
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
