// Package logfile is what package file needs of the system: which file a path names, how
// files are identified, renames that replace nothing, and the end of the last line.
package logfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Stamp is the layout of the time in the name of a rotated file: in one zone, names sort by
// time.
const Stamp = "20060102T150405.000000000Z0700"

func StillNames(path string, f *os.File) bool {
	same, err := leads(path, f, os.Lstat)
	return err == nil && same
}

func leads(path string, f *os.File, stat func(string) (fs.FileInfo, error)) (bool, error) {
	here, err := f.Stat()
	if err != nil {
		return false, err
	}
	there, err := stat(path)
	return err == nil && os.SameFile(here, there), err
}

// SearchLimit bounds the search of LastLineEnd, in bytes. A file without a line end there
// is no log.
const SearchLimit = 64 << 20

// LastLineEnd returns the offset after the last line end in the first size bytes of r, or
// 0.
func LastLineEnd(r io.ReaderAt, size int64) (int64, error) {
	buf := make([]byte, min(size, 64<<10))
	for end := size; end > 0; {
		if size-end >= SearchLimit {
			return 0, fmt.Errorf("no line end in its last %d bytes: this is not a log file, and nothing of it was changed; move it away or give another path", SearchLimit)
		}
		begin := max(0, end-int64(len(buf)))
		part := buf[:end-begin]
		if n, err := r.ReadAt(part, begin); n < len(part) {
			return 0, fmt.Errorf("read the end of the file: %w", err)
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			return begin + int64(i) + 1, nil
		}
		end = begin
	}
	return 0, nil
}

// RenameNew renames a file and fails with fs.ErrExist if the new name is taken.
func RenameNew(from, to string) error {
	err := renameExclusive(from, to)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL): // NFS, some FUSE
		return renameReserved(from, to)
	}
	return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
}

// renameReserved is RenameNew where the system has no such call: it reserves the new name
// with an empty file. If a crash leaves that, the next Open removes it.
func renameReserved(from, to string) error {
	place, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	place.Close()
	if err := os.Rename(from, to); err != nil {
		return errors.Join(err, os.Remove(to))
	}
	return nil
}
