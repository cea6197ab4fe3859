//go:build linux || darwin

package slabfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const supported = true

// openNoFollow opens path, which others may have put there: it does not follow a symbolic
// link, and does not wait for the other end of a FIFO.
func openNoFollow(path string, flag int, perm fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, flag|unix.O_NOFOLLOW|unix.O_NONBLOCK, perm)
	if errors.Is(err, unix.ELOOP) {
		return nil, fmt.Errorf("it is a symbolic link, which is not followed: name the file itself: %w", ErrForeign)
	}
	return f, err
}

// checkAccess refuses a file that another user made or may write to or read.
func checkAccess(info fs.FileInfo) error {
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("it belongs to user %d, and this process is user %d: remove it or chown it: %w", st.Uid, os.Geteuid(), fs.ErrPermission)
	}
	if p := info.Mode().Perm(); p&0o077 != 0 {
		return fmt.Errorf("others may use it (mode %04o), and it holds log lines: chmod 600 it: %w", p, fs.ErrPermission)
	}
	return nil
}

// firstHole returns where the first hole of f begins, or its size, or -1 if that is
// unknown. It moves the offset of Read and Write, which are not used.
func firstHole(f *os.File) int64 {
	at, err := unix.Seek(int(f.Fd()), 0, unix.SEEK_HOLE)
	if err != nil {
		return -1
	}
	return at
}

// mapShared maps the first n bytes of f.
func mapShared(f *os.File, n int) ([]byte, error) {
	p, err := unix.MmapPtr(int(f.Fd()), 0, nil, uintptr(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	return unsafe.Slice((*byte)(p), n), nil
}

func unmap(mem []byte) error {
	return os.NewSyscallError("munmap", unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(mem)), uintptr(len(mem))))
}

// fill allocates the first n bytes of f by writing what is there.
func fill(f *os.File, n int64) error {
	_, err := io.CopyN(io.NewOffsetWriter(f, 0), io.MultiReader(io.NewSectionReader(f, 0, n), zeros{}), n)
	return err
}

// zeros is what follows the end of a file.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
