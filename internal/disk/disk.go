// Package disk is the interface between code that keeps files and the file system:
// [Real] is the operating system's; package disktest has others for tests. Errors are
// those of the operating system, as *fs.PathError or *os.LinkError.
package disk

import (
	"errors"
	"io"
	"io/fs"
	"time"
)

// FS is the part of a file system that is used. It is safe for concurrent use.
//
//  1. A file's bytes are durable when [File.Sync] has returned nil, its name when
//     [FS.SyncDir] of its folder has. Neither implies the other.
//  2. Rename replaces an existing target atomically. It and Remove may be called while
//     files of the names are open, which stay usable.
type FS interface {
	// OpenFile opens name with os.O_* flags except O_APPEND. It does not follow a symbolic
	// link, does not wait for the other end of a FIFO, and fails with ErrNotFile for
	// anything but a regular file.
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	// List returns the entries of dir sorted by name.
	List(dir string) ([]Entry, error)
	Rename(oldname, newname string) error
	Remove(name string) error
	// MkdirAll creates dir and its missing parents and makes their names durable.
	MkdirAll(dir string, perm fs.FileMode) error
	// SyncDir makes new and removed names in dir durable.
	SyncDir(dir string) error
	// Lock takes an exclusive lock on the file name, which it creates. It fails with
	// ErrLocked if the lock is held elsewhere, in this process or another. Close or the end
	// of the process releases it.
	Lock(name string, perm fs.FileMode) (Lock, error)
	// LockDir is Lock for the folder itself. Many systems cannot.
	LockDir(dir string) (Lock, error)
}

type Lock interface {
	io.Closer
	Sameness
}

type Sameness interface {
	// Same reports whether the file's name still names it: not after the file or its folder
	// was removed, renamed or replaced.
	Same() (bool, error)
}

// File is an open file. ReadAt, WriteAt and Sync may run concurrently.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Sameness
	Truncate(size int64) error
	// TryLock takes an exclusive lock on the file until Close, as Lock does.
	TryLock() error
	// Sync returns when all bytes written before, and the size, are durable. After an error
	// their fate is unknown, and a later nil says nothing about them: do not call it again.
	Sync() error
	Size() (int64, error)
}

// Entry describes one name in a folder.
type Entry struct {
	Name    string
	Size    int64 // bytes; 0 for folders
	ModTime time.Time
	Dir     bool
	Refused error // why OpenFile would refuse it
}

var ErrLocked = errors.New("locked by another process")

var ErrNotFile = errors.New("not a regular file")

var ErrOwner = errors.New("file of another user")
