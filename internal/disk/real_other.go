//go:build !unix && !windows

package disk

import (
	"io/fs"
	"os"
)

func openFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(name, flag, perm)
}

// SyncDir implements FS: this system has no fsync of a folder.
func (Real) SyncDir(string) error { return nil }
