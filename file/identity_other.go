//go:build !unix && !windows

package file

import (
	"errors"
	"io/fs"
	"os"
)

// identity is not to be had on this system.
func identity(*os.File) (volume, inode uint64, err error) { return 0, 0, errors.ErrUnsupported }

func sameNumbers(string, fs.FileInfo, uint64, uint64) bool { return false }

func onVolume(string, fs.FileInfo, uint64) bool { return false }

func keepOwner(*os.File, fs.FileInfo) error { return nil }
