//go:build unix

package disk

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

func openFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(name, flag, perm)
}

// SyncDir implements FS.
func (Real) SyncDir(dir string) error {
	d, err := OpenFolder(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// A Folder is one that stays open, to be forced to the disk again and again.
type Folder struct{ f *os.File }

// OpenFolder opens dir, which the caller closes.
func OpenFolder(dir string) (Folder, error) {
	f, err := os.Open(dir)
	return Folder{f}, err
}

// Sync forces the names in the folder to the disk.
func (d Folder) Sync() error {
	err := d.f.Sync()
	// Some network file systems refuse fsync of a folder; they keep names by
	// themselves.
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil
	}
	return err
}

// Close ends its use. That of the zero Folder does nothing.
func (d Folder) Close() error {
	if d.f == nil {
		return nil
	}
	return d.f.Close()
}
