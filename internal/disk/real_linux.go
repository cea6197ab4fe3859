package disk

import (
	"io/fs"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// named is what a file's name must lead to.
type named struct {
	path string // with a NUL at its end; "": not known
	id   inode
}

type inode struct {
	major, minor uint32
	number       uint64
}

func statx(path string) (id inode, size int64, errno unix.Errno) {
	var st unix.Statx_t
	dir := unix.AT_FDCWD
	_, _, errno = unix.Syscall6(unix.SYS_STATX, uintptr(dir), uintptr(unsafe.Pointer(unsafe.StringData(path))),
		unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO|unix.STATX_SIZE, uintptr(unsafe.Pointer(&st)), 0)
	return inode{st.Dev_major, st.Dev_minor, st.Ino}, int64(st.Size), errno
}

// remember notes the inode, if the name leads to the open file.
func (f *realFile) remember() {
	path := f.Name() + "\x00"
	id, _, errno := statx(path)
	info, err := f.Stat()
	if errno != 0 || err != nil {
		return
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Ino == id.number {
		f.path, f.id = path, id
	}
}

// sameSize is Same and Size by one call without an allocation; not ok: it cannot tell.
func (f *realFile) sameSize() (same bool, size int64, ok bool) {
	if f.path == "" {
		return false, 0, false
	}
	id, size, errno := statx(f.path)
	return id == f.id, size, errno == 0
}

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

// forget is advice: an error does not matter.
func forget(f *os.File, off, n int64) {
	if raw, err := f.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.Fadvise(int(fd), off, n, unix.FADV_DONTNEED) })
	}
}

// unused reports whether closing f, which is open for writing, frees it: it has no name and
// is not open or mapped elsewhere, or the system would grant no write lease on it. Where
// there are no leases, known is false.
func unused(f *os.File) (unused, known bool) {
	info, err := f.Stat()
	if err != nil {
		return false, false
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Nlink > 0 {
		return false, ok
	}
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
	return err == nil && lease == nil, err == nil && (lease == nil || lease == unix.EAGAIN)
}
