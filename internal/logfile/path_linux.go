package logfile

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Path is checked repeatedly without allocating. It is not safe for concurrent use.
type Path struct {
	Text  string // as given
	name  []byte // text and a byte 0
	here  unix.Stat_t
	there unix.Statx_t
}

func NewPath(text string) *Path {
	return &Path{Text: text, name: append([]byte(text), 0)}
}

// Look returns the size of f, below 0 if that fails, and whether the path, links followed,
// leads to it. The error wraps fs.ErrNotExist if the path names nothing.
func (p *Path) Look(f *os.File) (size int64, same bool, err error) {
	err = unix.EINTR
	for err == unix.EINTR {
		err = unix.Fstat(int(f.Fd()), &p.here)
	}
	if err != nil {
		return -1, false, err
	}
	errno := unix.EINTR
	for errno == unix.EINTR {
		errno = p.statx()
	}
	switch errno {
	case 0:
		same = p.there.Ino == p.here.Ino && unix.Mkdev(p.there.Dev_major, p.there.Dev_minor) == p.here.Dev
	case unix.ENOSYS, unix.EPERM: // a kernel before 4.11, a sandbox that does not know the call
		same, err = leads(p.Text, f, os.Stat)
	default:
		err = errno
	}
	return p.here.Size, same, err
}

func (p *Path) statx() unix.Errno {
	dir := unix.AT_FDCWD
	_, _, errno := unix.Syscall6(unix.SYS_STATX, uintptr(dir), uintptr(unsafe.Pointer(&p.name[0])), 0,
		unix.STATX_INO, uintptr(unsafe.Pointer(&p.there)), 0)
	return errno
}
