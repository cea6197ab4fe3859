//go:build unix

package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// IsFull reports whether err means that the disk or a quota has no room, for now.
func IsFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// IsExhausted reports whether err says nothing about the file: the disk, the process or the
// system has no room, no descriptor or no memory left, for now.
func IsExhausted(err error) bool {
	return IsFull(err) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
}

var openFile = os.OpenFile

const (
	nonBlock = syscall.O_NONBLOCK
	noFollow = syscall.O_NOFOLLOW | nonBlock
)

// refuseOwner returns ErrOwner unless the file belongs to root, to this process's user, or,
// with folder set, to the owner of its folder: on a network file system root may be nobody.
func refuseOwner(name string, info fs.FileInfo, folder bool) error {
	uid, ok := ownerOf(info)
	if !ok || uid == 0 || int(uid) == os.Geteuid() {
		return nil
	}
	if folder {
		if dir, err := os.Stat(filepath.Dir(name)); err == nil {
			if of, ok := ownerOf(dir); ok && of == uid {
				return nil
			}
		}
	}
	return &fs.PathError{Op: "open", Path: name, Err: fmt.Errorf("%w, %d: give it to the user of this process, %d, or move it away", ErrOwner, uid, os.Geteuid())}
}

func nameless(f *os.File) bool {
	info, err := f.Stat()
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink == 0
}

func ownerOf(info fs.FileInfo) (uid uint32, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return st.Uid, true
}

// setBlocking removes O_NONBLOCK, which is only for the open.
func setBlocking(f *os.File) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var setErr error
	err = c.Control(func(fd uintptr) { setErr = syscall.SetNonblock(int(fd), false) })
	if err == nil {
		err = setErr
	}
	return err
}
