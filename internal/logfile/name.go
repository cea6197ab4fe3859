// Package logfile holds what the packages that keep log files have in common:
// how rotated files are named and told apart, renames that replace nothing,
// and where the last whole line ends.
package logfile

import "os"

// Stamp is the layout of the moment in the name of a rotated file: sorted by
// name is sorted by time, as long as the zone stays.
const Stamp = "20060102T150405.000000000Z0700"

// StillNames reports whether path is the name of f.
func StillNames(path string, f *os.File) bool {
	here, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(path)
	return err == nil && os.SameFile(here, there)
}

// sameFile reports whether path, links followed, leads to f.
func sameFile(path string, f *os.File) (bool, error) {
	here, err := f.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Stat(path)
	if err != nil {
		return false, err
	}
	return os.SameFile(here, there), nil
}
