// Package logfile is what package file needs of the system: which file a path names, how
// files are identified, renames that replace nothing, and the end of the last whole line.
package logfile

import (
	"io/fs"
	"os"
)

// Stamp is the layout of the moment in the name of a rotated file: sorted by
// name is sorted by time, as long as the zone stays.
const Stamp = "20060102T150405.000000000Z0700"

// StillNames reports whether path is the name of f.
func StillNames(path string, f *os.File) bool {
	same, err := leads(path, f, os.Lstat)
	return err == nil && same
}

// leads reports whether what stat finds at path is f.
func leads(path string, f *os.File, stat func(string) (fs.FileInfo, error)) (bool, error) {
	here, err := f.Stat()
	if err != nil {
		return false, err
	}
	there, err := stat(path)
	return err == nil && os.SameFile(here, there), err
}
