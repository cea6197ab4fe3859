package recordlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rollway/rollway/internal/disk"
)

const (
	// LockName is the file that the owner of a folder locks.
	LockName = "LOCK"
	// ExtNew ends the name of an unfinished small file.
	ExtNew = ".new"
	// ExtBad is in the names of files set aside: NAME.bad, NAME.bad-2 and so on.
	ExtBad = ".bad"

	fileMode = 0o640
)

// Lock locks the folder for this process. The error wraps disk.ErrLocked if another one has
// it.
func Lock(fsys disk.FS, dir string) (disk.Lock, error) {
	return fsys.Lock(filepath.Join(dir, LockName), fileMode)
}

// LockFolder is Lock, and locks the folder itself too where the system can: LOCK may be
// removed. Same then tells about the folder.
func LockFolder(fsys disk.FS, dir string) (disk.Lock, error) {
	file, err := Lock(fsys, dir)
	if err != nil {
		return nil, err
	}
	folder, err := fsys.LockDir(dir)
	switch {
	case errors.Is(err, disk.ErrLocked):
		return nil, errors.Join(err, file.Close())
	case err != nil: // as on some network file systems
		return file, nil
	}
	return folderLock{folder, file}, nil
}

type folderLock struct {
	disk.Lock
	file disk.Lock
}

func (l folderLock) Close() error { return errors.Join(l.Lock.Close(), l.file.Close()) }

// InUse reports whether a process has the folder locked. A folder that does not exist is an
// error; one without a lock file is not in use.
func InUse(dir string) (bool, error) {
	if _, err := os.Stat(dir); err != nil {
		return false, err
	}
	if folder, err := (disk.Real{}).LockDir(dir); errors.Is(err, disk.ErrLocked) {
		return true, nil
	} else if err == nil { // else folders cannot be locked here
		folder.Close()
	}
	if _, err := os.Stat(filepath.Join(dir, LockName)); errors.Is(err, fs.ErrNotExist) {
		return false, nil // do not create it
	}
	lock, err := Lock(disk.Real{}, dir)
	if errors.Is(err, disk.ErrLocked) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, lock.Close()
}

// Name returns the name of a segment file: the number of its first record in 20 digits, and
// ext.
func Name(first uint64, ext string) string { return fmt.Sprintf("%020d%s", first, ext) }

// ParseName splits the name of a segment file.
func ParseName(name string) (first uint64, ext string, ok bool) {
	if len(name) < 21 || name[20] != '.' {
		return 0, "", false
	}
	for _, c := range name[:20] {
		if c < '0' || c > '9' || first > MaxNumber/10 {
			return 0, "", false
		}
		first = first*10 + uint64(c-'0')
	}
	return first, name[20:], first < MaxNumber
}

// IsSetAside reports whether MoveAside has given name.
func IsSetAside(name string) bool {
	_, n, ok := strings.Cut(name, ExtBad)
	return ok && (n == "" || n[0] == '-')
}

// MoveAside renames a file that is kept and not read, and returns its new name.
func MoveAside(fsys disk.FS, dir, name string) (string, error) {
	taken := make(map[string]bool)
	entries, err := fsys.List(dir)
	if err != nil {
		return "", fmt.Errorf("set aside %s: %w", name, err)
	}
	for _, e := range entries {
		taken[e.Name] = true
	}
	target := name + ExtBad
	for n := 2; taken[target]; n++ {
		target = fmt.Sprintf("%s%s-%d", name, ExtBad, n)
	}
	if err := fsys.Rename(filepath.Join(dir, name), filepath.Join(dir, target)); err != nil {
		return "", fmt.Errorf("set aside %s: %w", name, err)
	}
	if err := fsys.SyncDir(dir); err != nil {
		return "", fmt.Errorf("set aside %s: %w", name, err)
	}
	return target, nil
}

// Remove removes path. A missing file is not an error.
func Remove(fsys disk.FS, path string) error {
	if err := fsys.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// WriteFile replaces a small file: it writes and syncs a new one, renames it and syncs the
// folder. After an error the old file is there.
func WriteFile(fsys disk.FS, path string, data []byte) error {
	open := func() (disk.File, error) {
		return fsys.OpenFile(path+ExtNew, os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode)
	}
	f, err := open()
	if errors.Is(err, fs.ErrExist) || errors.Is(err, disk.ErrNotFile) { // left by a crash, or planted
		if err = fsys.Remove(path + ExtNew); err == nil {
			f, err = open()
		}
	}
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, 0)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = fsys.Rename(path+ExtNew, path)
	}
	if err != nil {
		return errors.Join(err, Remove(fsys, path+ExtNew))
	}
	return fsys.SyncDir(filepath.Dir(path))
}

// Create makes or replaces the file at path, locks it, and writes h at its beginning. Unless
// replace is set, it fails with fs.ErrExist if the file has more than a header. After an
// error the file is gone, unless it was there or is locked elsewhere.
func Create(fsys disk.FS, path string, h Header, replace bool) (disk.File, error) {
	f, err := fsys.OpenFile(path, os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, fmt.Errorf("create segment: %w", err)
	}
	err = LockFile(f, path)
	size := int64(0)
	if err == nil {
		size, err = f.Size()
	}
	if err == nil && size > HeaderSize && !replace {
		err = &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create segment: %w", err), f.Close())
	}
	if size > 0 {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt(h.Append(nil), 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write segment header: %w", err), f.Close(), Remove(fsys, path))
	}
	return f, nil
}

// LockFile locks f, which is open at path. It fails only if another process has the lock:
// some network file systems have none.
func LockFile(f disk.File, path string) error {
	if err := f.TryLock(); errors.Is(err, disk.ErrLocked) {
		return fmt.Errorf("%s is written by another process: %w", path, err)
	}
	return nil
}

// ReadFile returns at most limit bytes of a small file.
func ReadFile(fsys disk.FS, path string, limit int64) ([]byte, error) {
	f, err := fsys.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read from
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	b := make([]byte, min(size, limit))
	if n, err := f.ReadAt(b, 0); n < len(b) {
		return nil, err
	}
	return b, nil
}
