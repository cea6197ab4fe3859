package file

import (
	"io/fs"
	"os"

	"github.com/rollway/rollway/internal/logfile"
)

// sameNumbers reports whether the file at path is the one of the numbers.
func sameNumbers(path string, _ fs.FileInfo, volume, inode uint64) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	v, i, err := logfile.Identity(f)
	return err == nil && v == volume && i == inode
}

// onVolume reports whether the file at path is on the volume.
func onVolume(path string, _ fs.FileInfo, volume uint64) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	v, _, err := logfile.Identity(f)
	return err == nil && v == volume
}

// keepOwner does nothing: a new file inherits from its folder.
func keepOwner(*os.File, fs.FileInfo) error { return nil }
