package backup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/internal/disk"
)

// Unfinished is the folder in a data folder with what a restore has written so far. No collector
// begins where it is.
const Unfinished = ".restoring"

// Restore writes the backup in the file at path to the data folder dir, which is made if necessary
// and must be empty, except for what an interrupted restore has left. Each line is compared with its
// checksum, in the backup and as written; only then the files get their names. After an error
// nothing is left.
func Restore(path, dir string) (r *Report, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read from
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	part := filepath.Join(dir, Unfinished)
	if err := empty(dir, part); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(part))
		}
	}()
	if r, err = Read(f, info.Size(), part); err != nil {
		return nil, err
	}
	found, err := journal.Audit(filepath.Join(part, Journal), journal.AuditOptions{})
	if err != nil {
		return nil, err
	}
	if uint64(found.Records) != r.Found || found.ID != r.Journal {
		return nil, fmt.Errorf("the disk has not kept what was written to %s: %d lines of %d are sound", part, found.Records, r.Found)
	}
	return r, install(dir, part)
}

// empty makes dir, and fails if something is in it. An interrupted restore is removed.
func empty(dir, part string) error {
	if err := (disk.Real{}).MkdirAll(dir, 0o750); err != nil {
		return err
	}
	if err := os.RemoveAll(part); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.Name() != "lost+found" { // of a file system
			return fmt.Errorf("%s is not empty: it has %s; give a folder that is empty or does not exist", dir, e.Name())
		}
	}
	return err
}

// install gives what is in part its names in dir. Folders are synced first, the deepest before others.
func install(dir, part string) error {
	var real disk.Real
	for _, name := range []string{Journal + "cursors", Journal, Rejected, "."} {
		if err := real.SyncDir(filepath.Join(part, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	for _, name := range []string{Rejected, Journal} {
		if err := os.Rename(filepath.Join(part, name), filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if err := real.SyncDir(dir); err != nil {
		return err
	}
	if err := os.Remove(part); err != nil {
		return err
	}
	return real.SyncDir(dir)
}
