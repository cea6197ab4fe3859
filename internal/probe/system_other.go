//go:build !linux

package probe

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
)

// renameNeedsClosed is whether an open file may refuse to be renamed and
// removed.
const renameNeedsClosed = runtime.GOOS == "windows"

var errNotTried = fmt.Errorf("not tried on %s: %w", runtime.GOOS, errors.ErrUnsupported)

func alignOf(*os.File) Align         { return Align{} }
func setDirect(*os.File, bool) error { return errNotTried }
func allocate(*os.File, int64) error { return errNotTried }
func spaceOf(string) Space           { return Space{} }
func mountOf(string) Mount           { return Mount{} }
func fileLimit() int64               { return 0 }

func owners(fs.FileInfo) (owner, user string) { return "", "" }

func write(f *os.File, b []byte, offset int64, m Mode) error {
	if m != Buffered {
		return errNotTried
	}
	_, err := f.WriteAt(b, offset)
	return err
}

func alignedMemory(n int) (b []byte, free func(), err error) {
	return make([]byte, n), func() {}, nil
}
