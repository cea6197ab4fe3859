//go:build unix

package file

import (
	"io/fs"
	"os"
	"syscall"
)

// numbers is logfile.Identity of what was looked at already.
func numbers(info fs.FileInfo) (volume, inode uint64) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0
	}
	return uint64(st.Dev), uint64(st.Ino) // types differ by system
}

// sameNumbers reports whether the file at path is the one of the numbers.
func sameNumbers(_ string, info fs.FileInfo, volume, inode uint64) bool {
	v, i := numbers(info)
	return v == volume && i == inode
}

// onVolume reports whether the file at path is on the volume.
func onVolume(_ string, info fs.FileInfo, volume uint64) bool {
	v, _ := numbers(info)
	return v == volume
}

// keepOwner gives f the owner that old has.
func keepOwner(f *os.File, old fs.FileInfo) error {
	was, ok := old.Sys().(*syscall.Stat_t)
	info, err := f.Stat()
	if err != nil || !ok {
		return err
	}
	if is, ok := info.Sys().(*syscall.Stat_t); ok && is.Uid == was.Uid && is.Gid == was.Gid {
		return nil
	}
	return f.Chown(int(was.Uid), int(was.Gid))
}
