package file

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// link makes Options.Link point at the current file.
func (f *File) link() error {
	if f.opt.Link == "" || !f.io.regular {
		return nil
	}
	path, to := f.opt.Link, f.io.real
	if filepath.Dir(to) == filepath.Dir(path) {
		to = filepath.Base(to) // the folder may be moved
	}
	now, err := os.Readlink(path)
	if err == nil && now == to {
		return nil
	}
	if _, is := os.Lstat(path); err != nil && is == nil {
		return fmt.Errorf("%s is no symbolic link and is left alone", path)
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
