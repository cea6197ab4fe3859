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

// FS is the part of a file system that the project's files need. All methods
// are safe for concurrent use.
//
//  1. A file's bytes are durable when [File.Sync] has returned nil; its name is
//     durable when [FS.SyncDir] of its folder has. Neither implies the other.
//  2. Rename replaces an existing target atomically, and may be called while
//     files of either name are open; they stay usable. So may Remove.
type FS interface {
	// OpenFile opens name with os.O_* flags except O_APPEND. It does not follow a
	// symbolic link at name, does not wait for the other end of a FIFO, and fails
	// with ErrNotFile for anything but a regular file.
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	// List returns the entries of dir sorted by name.
	List(dir string) ([]Entry, error)
	Rename(oldname, newname string) error
	Remove(name string) error
	// MkdirAll creates dir and its missing parents and makes their names durable.
	MkdirAll(dir string, perm fs.FileMode) error
	// SyncDir makes the names in dir durable, new and removed ones.
	SyncDir(dir string) error
	// Lock takes an exclusive lock on the file name, which it creates. It fails with
	// ErrLocked when another holder, in this process or another, has the lock. Close
	// or the end of the process releases it. It opens name as OpenFile does.
	Lock(name string, perm fs.FileMode) (Lock, error)
}

// A Lock is held until Close.
type Lock interface {
	io.Closer
	Sameness
}

// Sameness is a check of an open file.
type Sameness interface {
	// Same reports whether the name by which the file was opened still names this
	// file: it does not after the file or its folder was removed, renamed or
	// replaced.
	Same() (bool, error)
}

// File is an open file. ReadAt and WriteAt may run concurrently with each other
// and with Sync.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Sameness
	Truncate(size int64) error
	// Sync returns when all bytes written before the call, and the size, are
	// durable. After an error the fate of those bytes is unknown and a later
	// nil says nothing about them: do not call it again on this File.
	Sync() error
	Size() (int64, error)
}

// Entry describes one name in a folder.
type Entry struct {
	Name    string
	Size    int64 // bytes; 0 for folders
	ModTime time.Time
	Dir     bool
}

// ErrLocked is what Lock's error wraps when the lock is held elsewhere.
var ErrLocked = errors.New("locked by another process")

// ErrNotFile is what the error of OpenFile and Lock wraps when the name is a
// folder, a symbolic link, a FIFO, a socket or a device.
var ErrNotFile = errors.New("not a regular file")
