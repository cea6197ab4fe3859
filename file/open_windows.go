package file

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// openFile opens through an os.Root, which shares the file for deletion as
// os.OpenFile does not: without it no open file can be renamed.
func openFile(path string, flag int, perm fs.FileMode) (*os.File, error) {
	info, err := os.Lstat(path)
	if err == nil && !info.Mode().IsRegular() {
		return os.OpenFile(path, flag, perm) // a pipe, the console, a link
	}
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	f, err := root.OpenFile(filepath.Base(path), flag, perm)
	return f, errors.Join(err, root.Close())
}
