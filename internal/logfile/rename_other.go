//go:build !linux && !darwin

package logfile

// RenameNew renames a file and fails with fs.ErrExist where the new name is
// taken.
func RenameNew(from, to string) error { return renameReserved(from, to) }
