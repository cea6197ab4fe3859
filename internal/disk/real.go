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
type Real struct {
	// Owned refuses files of other users by ErrOwner, except for those of root and of the
	// folder's owner.
	Owned bool
}

// OpenFile is os.OpenFile for a file that can be renamed and removed while it is open.
func OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	return openFile(name, flag, perm)
}

func SyncData(f *os.File) error { return (&realFile{File: f}).Sync() }

func (r Real) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := r.openRegular(openFile, name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &realFile{File: f}, nil
}

// OthersMay returns what users who are neither the owner nor of the group of the file or
// folder may do with it: "read", "write", "read and write" or "". Windows tells nothing.
func OthersMay(name string) string {
	info, err := os.Stat(name)
	if err != nil || runtime.GOOS == "windows" {
		return ""
	}
	return [...]string{0: "", 2: "write", 4: "read", 6: "read and write"}[info.Mode().Perm()&6]
}

// OpenConfig opens a file that a configuration names, to read it. Links are followed. It
// must be a regular file of root or this process's user.
func OpenConfig(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|nonBlock, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notFile(name, info.Mode(), nil)
	}
	if err == nil {
		err = refuseOwner(name, info, false)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// ReadConfig returns at most limit bytes of a file as by OpenConfig.
func ReadConfig(name string, limit int64) ([]byte, error) {
	f, err := OpenConfig(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read from
	return io.ReadAll(io.LimitReader(f, limit))
}

// openRegular opens a regular file with open, and leaves anything else alone.
func (r Real) openRegular(open func(string, int, fs.FileMode) (*os.File, error), name string, flag int, perm fs.FileMode) (*os.File, error) {
	if noFollow == 0 { // the system has no such flags
		if info, err := os.Lstat(name); err == nil && !info.Mode().IsRegular() {
			return nil, notFile(name, info.Mode(), nil)
		}
	}
	opened := flag | noFollow
	if r.Owned {
		opened &^= os.O_TRUNC // not before its owner is known
	}
	f, err := open(name, opened, perm)
	if err != nil {
		if info, statErr := os.Lstat(name); statErr == nil && !info.Mode().IsRegular() {
			return nil, notFile(name, info.Mode(), err)
		}
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notFile(name, info.Mode(), nil)
	}
	if err == nil && r.Owned {
		err = refuseOwner(name, info, true)
		if err == nil && flag&os.O_TRUNC != 0 && info.Size() > 0 {
			err = f.Truncate(0)
		}
	}
	if err == nil {
		err = setBlocking(f)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func notFile(name string, mode fs.FileMode, cause error) error {
	kind := "a device"
	switch {
	case mode.IsDir():
		kind = "a folder"
	case mode&fs.ModeSymlink != 0:
		kind = "a symbolic link"
	case mode&fs.ModeNamedPipe != 0:
		kind = "a FIFO"
	case mode&fs.ModeSocket != 0:
		kind = "a socket"
	}
	err := fmt.Errorf("%w but %s: move it away", ErrNotFile, kind)
	var p *fs.PathError
	if errors.As(cause, &p) {
		err = fmt.Errorf("%w (%w)", err, p.Err)
	}
	return &fs.PathError{Op: "open", Path: name, Err: err}
}

func same(f *os.File, stat func(string) (fs.FileInfo, error)) (bool, error) {
	open, err := f.Stat()
	if err != nil {
		return false, err
	}
	named, err := stat(f.Name())
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return false, nil
	}
	return err == nil && os.SameFile(open, named), err
}

// List implements FS. It leaves out what vanishes meanwhile.
func (r Real) List(dir string) ([]Entry, error) {
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
		switch name := filepath.Join(dir, e.Name); {
		case e.Dir:
		case !info.Mode().IsRegular():
			e.Refused = notFile(name, info.Mode(), nil)
		default:
			e.Size = info.Size()
			if r.Owned {
				e.Refused = refuseOwner(name, info, true)
			}
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

// SyncDir implements FS. Some systems have no fsync of a folder, and some network file
// systems refuse it: they keep names without it.
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

func (r Real) Lock(name string, perm fs.FileMode) (Lock, error) {
	f, err := r.openRegular(os.OpenFile, name, os.O_RDWR|os.O_CREATE, perm)
	if err != nil {
		return nil, err
	}
	if err := TryLock(f, true); err != nil {
		f.Close()
		return nil, &fs.PathError{Op: "lock", Path: name, Err: err}
	}
	return heldLock{f}, nil
}

// A heldLock is a file with the lock. It is unlocked before it is closed: a child that is
// being started has the file too, and would keep the lock.
type heldLock struct{ *os.File }

func (l heldLock) Close() error {
	Unlock(l.File)
	return l.File.Close()
}

func (l heldLock) Same() (bool, error) { return same(l.File, os.Lstat) }

// LockDir implements FS.
func (Real) LockDir(dir string) (Lock, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := TryLock(f, true); err != nil {
		return nil, errors.Join(&fs.PathError{Op: "lock", Path: dir, Err: err}, f.Close())
	}
	return heldDir{heldLock{f}}, nil
}

type heldDir struct{ heldLock }

func (l heldDir) Same() (bool, error) { return same(l.File, os.Stat) }

type realFile struct {
	*os.File
	locked bool // written by TryLock alone
	named       // of the system; see sameSize
}

// SameSize is f.Same and, if that is true, f.Size. It allocates nothing where it matters.
func SameSize(f File) (same bool, size int64, err error) {
	if r, ok := f.(*realFile); ok {
		if same, size, ok = r.sameSize(); ok {
			return same, size, nil
		}
	}
	if same, err = f.Same(); same && err == nil {
		size, err = f.Size()
	}
	return same, size, err
}

func (f *realFile) Same() (bool, error) { return same(f.File, os.Lstat) }

// TryLock implements File. A lock of Windows would keep readers out.
func (f *realFile) TryLock() error {
	if runtime.GOOS == "windows" {
		return nil
	}
	err := TryLock(f.File, true)
	f.locked = err == nil
	f.remember()
	return err
}

func (f *realFile) Close() error {
	if f.locked {
		Unlock(f.File) // as of a heldLock
	}
	return f.File.Close()
}

func (f *realFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
