package disk

import "errors"

// ErrInUse is the error of Free for a file that is open elsewhere, or has a name.
var ErrInUse = errors.New("file is in use elsewhere")

// Free cuts piece bytes off the end of f, whose name has been removed or replaced. It
// returns done when the caller should close f, which frees the rest. A file system that
// frees a large file at once blocks its journal, and every fsync, meanwhile.
//
// The error is ErrInUse, and nothing is cut, as long as the file is open elsewhere, in
// this process or another, or has a name. Where the system cannot tell, and for files
// that are not Real's, Free is done at once.
func Free(f File, piece int64) (done bool, err error) {
	r, ok := f.(*realFile)
	if !ok {
		return true, nil
	}
	switch unused, known := Unused(r.File); {
	case !known:
		return true, nil
	case !unused:
		return false, ErrInUse
	}
	size, err := r.Size()
	if err != nil || size <= piece {
		return true, err
	}
	err = r.Truncate(size - piece)
	return err != nil, err
}
