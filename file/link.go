package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// link makes Options.Link point at the current file.
func (f *File) link() error {
	if f.opt.Link == "" || !f.io.regular || f.io.std {
		return nil
	}
	path, to := f.opt.Link, f.io.real
	if filepath.Dir(to) == filepath.Dir(path) {
		to = filepath.Base(to) // the folder may be moved
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case info.Mode()&fs.ModeSymlink == 0:
		return fmt.Errorf("%s is no symbolic link and is left alone", path)
	default:
		if now, err := os.Readlink(path); err == nil && now == to {
			return nil
		}
	}
	temp := path + partial + "-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	if err := os.Symlink(to, temp); err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return nil
}
