package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
)

// Real is the operating system's file system.
type Real struct{}

// OpenFile is Real's OpenFile for who needs the system's own file.
func OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	return openFile(name, flag, perm)
}

// LockFile takes the lock that Real's Lock takes, on an open file: its error is
// ErrLocked where somebody else has it. Closing f gives it back.
func LockFile(f *os.File) error { return lockFile(f) }

// SyncData forces what f holds to the disk; see File.Sync.
func SyncData(f *os.File) error { return (&realFile{f}).Sync() }

// OpenFile implements FS.
func (Real) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := openFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &realFile{f}, nil
}

// List implements FS. An entry that vanishes while it is read is left out.
func (Real) List(dir string) ([]Entry, error) {
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, 0, len(names))
	for _, d := range names {
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		e := Entry{Name: d.Name(), ModTime: info.ModTime(), Dir: d.IsDir()}
		if !e.Dir {
			e.Size = info.Size()
		}
		entries = append(entries, e)
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].Name < entries[j].Name })
	return entries, nil
}

// Rename implements FS.
func (Real) Rename(oldname, newname string) error { return os.Rename(oldname, newname) }

// Remove implements FS.
func (Real) Remove(name string) error { return os.Remove(name) }

// MkdirAll implements FS.
func (r Real) MkdirAll(dir string, perm fs.FileMode) error {
	dir = filepath.Clean(dir)
	var made []string
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); err == nil || filepath.Dir(d) == d {
			break
		}
		made = append(made, d)
	}
	if err := os.MkdirAll(dir, perm); err != nil {
		return err
	}
	for i := len(made) - 1; i >= 0; i-- {
		if err := r.SyncDir(filepath.Dir(made[i])); err != nil {
			return fmt.Errorf("sync folder: %w", err)
		}
	}
	return nil
}

// Lock implements FS with flock(2), on Windows with LockFileEx.
func (Real) Lock(name string, perm fs.FileMode) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, perm)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		f.Close()
		return nil, &fs.PathError{Op: "lock", Path: name, Err: err}
	}
	return f, nil
}

type realFile struct{ *os.File }

func (f *realFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
