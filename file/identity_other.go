//go:build !unix && !windows

package file

import (
	"io/fs"
	"os"
)

func sameNumbers(string, fs.FileInfo, uint64, uint64) bool { return false }

func onVolume(string, fs.FileInfo, uint64) bool { return false }

func keepOwner(*os.File, fs.FileInfo) error { return nil }
