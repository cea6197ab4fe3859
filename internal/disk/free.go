package disk

import (
	"errors"
	"os"
)

// ErrInUse is the error of Free for a file that is open elsewhere or has a name.
var ErrInUse = errors.New("file is in use elsewhere")

// Free cuts piece bytes off the end of f, whose name was removed or replaced. It returns
// done when the caller should close f, which frees the rest. A file system that frees a
// large file at once blocks every fsync meanwhile.
//
// The error is ErrInUse, and nothing is cut, while the file is open elsewhere, in this
// process or another, or has a name. Where the system cannot tell, Free is done at once.
func Free(f *os.File, piece int64) (done bool, err error) {
	switch unused, known := unused(f); {
	case !known:
		return true, nil
	case !unused:
		return false, ErrInUse
	}
	info, err := f.Stat()
	if err != nil || info.Size() <= piece {
		return true, err
	}
	err = f.Truncate(info.Size() - piece)
	return err != nil, err
}

// Removed reports whether f has no name any more, as far as the system tells.
func Removed(f File) bool {
	r, ok := f.(*realFile)
	return ok && nameless(r.File)
}

// Forget tells the system that a part of f, which was read, will not be needed soon.
func Forget(f File, off, n int64) {
	if r, ok := f.(*realFile); ok {
		forget(r.File, off, n)
	}
}

// FreeFile is Free for a File, which is done at once if it is not Real's.
func FreeFile(f File, piece int64) (done bool, err error) {
	if r, ok := f.(*realFile); ok {
		return Free(r.File, piece)
	}
	return true, nil
}
