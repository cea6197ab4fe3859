// Package logfile is what package file needs of the system: which file a path names, how
// files are identified, renames that replace nothing, and the end of the last line.
package logfile

import (
	"io/fs"
	"os"
)

// Stamp is the layout of the time in the name of a rotated file: in one zone, names sort by
// time.
const Stamp = "20060102T150405.000000000Z0700"

func StillNames(path string, f *os.File) bool {
	same, err := leads(path, f, os.Lstat)
	return err == nil && same
}

func leads(path string, f *os.File, stat func(string) (fs.FileInfo, error)) (bool, error) {
	here, err := f.Stat()
	if err != nil {
		return false, err
	}
	there, err := stat(path)
	return err == nil && os.SameFile(here, there), err
}
