package file

import (
	"io/fs"
	"os"
	"syscall"
)

// identity returns the volume's serial number and the file's index in it.
func identity(f *os.File) (volume, inode uint64, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	var info syscall.ByHandleFileInformation
	var infoErr error
	err = raw.Control(func(h uintptr) {
		infoErr = syscall.GetFileInformationByHandle(syscall.Handle(h), &info)
	})
	if err == nil {
		err = infoErr
	}
	return uint64(info.VolumeSerialNumber), uint64(info.FileIndexHigh)<<32 | uint64(info.FileIndexLow), err
}

// sameNumbers reports whether the file at path is the one of the numbers.
func sameNumbers(path string, _ fs.FileInfo, volume, inode uint64) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	v, i, err := identity(f)
	return err == nil && v == volume && i == inode
}

// onVolume reports whether the file at path is on the volume.
func onVolume(path string, _ fs.FileInfo, volume uint64) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	v, _, err := identity(f)
	return err == nil && v == volume
}

// keepOwner does nothing: a new file inherits from its folder.
func keepOwner(*os.File, fs.FileInfo) error { return nil }
