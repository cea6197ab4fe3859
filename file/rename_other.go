//go:build !linux && !darwin

package file

// renameNew renames a file and fails with fs.ErrExist where the new name is
// taken.
func renameNew(from, to string) error { return renameReserved(from, to) }
