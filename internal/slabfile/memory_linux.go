package slabfile

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// allocate gives the first n bytes of f blocks, so that no store into them can
// fail; what is there stays.
func allocate(f *os.File, n int64) error {
	var err error
	for {
		if err = unix.Fallocate(int(f.Fd()), 0, 0, n); err != unix.EINTR {
			break
		}
	}
	if err == unix.EOPNOTSUPP || err == unix.ENOSYS {
		return fill(f, n)
	}
	return os.NewSyscallError("fallocate", err)
}

// populate makes all pages of mem present and writable.
func populate(mem []byte) error {
	for {
		switch err := unix.Madvise(mem, unix.MADV_POPULATE_WRITE); err {
		case nil:
			return nil
		case unix.EINTR, unix.EAGAIN:
		case unix.EINVAL, unix.ENOSYS: // before Linux 5.14
			touch(mem)
			return nil
		default:
			return os.NewSyscallError("madvise", err)
		}
	}
}

// checkFileSystem refuses those whose locks and mappings another machine may
// not see.
func checkFileSystem(f *os.File) error {
	switch kind(f) {
	case unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC:
		return fmt.Errorf("it is on a network's file system, which does not keep locks and mapped memory together: put it on tmpfs: %w", errors.ErrUnsupported)
	}
	return nil
}

func inMemory(f *os.File) bool {
	k := kind(f)
	return k == unix.TMPFS_MAGIC || k == unix.RAMFS_MAGIC
}

// kind is the file system's magic number, 0 if that is not known.
func kind(f *os.File) uint32 {
	var st unix.Statfs_t
	if f == nil || unix.Fstatfs(int(f.Fd()), &st) != nil {
		return 0
	}
	return uint32(st.Type)
}
