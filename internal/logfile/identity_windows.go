package logfile

import (
	"io/fs"
	"os"
	"syscall"
)

// Identity returns the volume's serial number and the file's index in it.
func Identity(f *os.File) (volume, inode uint64, err error) {
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

// IdentityAt is Identity of the file at path, which info describes.
func IdentityAt(path string, _ fs.FileInfo) (volume, inode uint64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	return Identity(f)
}
