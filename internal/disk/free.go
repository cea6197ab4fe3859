package disk

import "errors"

// ErrInUse says that somebody else has a file open, or that it has a name.
var ErrInUse = errors.New("file is in use elsewhere")

// Free cuts piece bytes off the end of f, whose name has been removed or
// replaced, and reports whether nothing is left for it to do: then f is to be
// closed, which frees the rest. A file system that frees a large file at once
// keeps its journal, and every fsync, waiting meanwhile.
//
// The error is ErrInUse as long as somebody else has the file open, in this
// process or another, or it has a name: nothing is cut then. Where the system cannot tell, and for
// files that are not Real's, there is nothing to do.
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
