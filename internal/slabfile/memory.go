//go:build linux || darwin

package slabfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const supported = true

// openNoFollow does not follow a symbolic link at the end of path: in a folder
// that others may write to it may lead anywhere.
func openNoFollow(path string, flag int, perm fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, flag|unix.O_NOFOLLOW|unix.O_NONBLOCK, perm)
	if errors.Is(err, unix.ELOOP) {
		return nil, fmt.Errorf("it is a symbolic link: %w", ErrForeign)
	}
	return f, err
}

// checkAccess refuses a file that another user made or may write to or read.
func checkAccess(info fs.FileInfo) error {
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() && os.Geteuid() != 0 {
		return fmt.Errorf("it belongs to user %d: %w", st.Uid, fs.ErrPermission)
	}
	if p := info.Mode().Perm(); p&0o077 != 0 {
		return fmt.Errorf("others may use it (mode %04o), and it holds log lines: chmod 600 it: %w", p, fs.ErrPermission)
	}
	return nil
}

func flock(f *os.File) error {
	for {
		switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err {
		case unix.EINTR:
		case unix.EWOULDBLOCK:
			return ErrLocked
		default:
			return err
		}
	}
}

// mapShared maps the first n bytes of f and, if they are to be written, makes
// sure that no store has to wait for a page.
func mapShared(f *os.File, n int, writable bool) ([]byte, error) {
	prot := unix.PROT_READ
	if writable {
		prot |= unix.PROT_WRITE
	}
	p, err := unix.MmapPtr(int(f.Fd()), 0, nil, uintptr(n), prot, unix.MAP_SHARED)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	mem := unsafe.Slice((*byte)(p), n)
	if writable {
		if err := populate(mem); err != nil {
			return nil, errors.Join(err, detach(mem))
		}
	}
	return mem, nil
}

// touch stores into each page what is there.
func touch(mem []byte) {
	for i := 0; i < len(mem); i += os.Getpagesize() {
		p := (*byte)(unsafe.Pointer(&mem[i]))
		*p = keep(*p)
	}
}

// keep returns b, which the compiler does not know.
//
//go:noinline
func keep(b byte) byte { return b }

// detach puts private zeros where a mapping was.
func detach(mem []byte) error {
	_, err := unix.MmapPtr(-1, 0, unsafe.Pointer(unsafe.SliceData(mem)), uintptr(len(mem)),
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE|unix.MAP_FIXED)
	runtime.KeepAlive(mem)
	return os.NewSyscallError("mmap", err)
}

// fill gives the first n bytes of f blocks by writing what is there.
func fill(f *os.File, n int64) error {
	buf := make([]byte, 256<<10)
	for at := int64(0); at < n; {
		part := buf[:min(int64(len(buf)), n-at)]
		got, err := f.ReadAt(part, at)
		if err != nil && err != io.EOF {
			return err
		}
		clear(part[got:])
		if _, err := f.WriteAt(part, at); err != nil {
			return err
		}
		at += int64(len(part))
	}
	return nil
}
