package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// Real is the operating system's file system, as an FS.
type Real struct{}

// OpenFile is os.OpenFile, but that a file which is open can be renamed and removed
// on Windows as well.
func OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	return openFile(name, flag, perm)
}

// SyncData forces what f holds to the disk; see File.Sync.
func SyncData(f *os.File) error { return (&realFile{f}).Sync() }

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
	return entries, nil
}

func (Real) Rename(oldname, newname string) error { return os.Rename(oldname, newname) }

func (Real) Remove(name string) error { return os.Remove(name) }

func (r Real) MkdirAll(dir string, perm fs.FileMode) error {
	dir = filepath.Clean(dir)
	parent := filepath.Dir(dir)
	if _, err := os.Stat(dir); err == nil || parent == dir {
		return os.MkdirAll(dir, perm) // an error, if it is a file
	}
	if err := r.MkdirAll(parent, perm); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, perm); err != nil {
		return err
	}
	if err := r.SyncDir(parent); err != nil {
		return fmt.Errorf("sync folder: %w", err)
	}
	return nil
}

// SyncDir implements FS. Some systems have no fsync of a folder (Windows: NTFS
// journals names), and some network file systems refuse it: they keep names by
// themselves.
func (Real) SyncDir(dir string) error {
	switch runtime.GOOS {
	case "windows", "js", "wasip1":
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, d.Close())
}

// Lock implements FS with flock(2), on Windows with LockFileEx.
func (Real) Lock(name string, perm fs.FileMode) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, perm)
	if err != nil {
		return nil, err
	}
	if err := TryLock(f); err != nil {
		f.Close()
		return nil, &fs.PathError{Op: "lock", Path: name, Err: err}
	}
	return heldLock{f}, nil
}

// A heldLock is a file with the lock. It gives the lock back before it closes
// the file: a child that is being started has the file too, until its program
// runs, and would keep the lock.
type heldLock struct{ *os.File }

func (l heldLock) Close() error {
	unlockFile(l.File)
	return l.File.Close()
}

type realFile struct{ *os.File }

func (f *realFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
