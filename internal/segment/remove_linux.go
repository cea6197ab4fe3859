package segment

import (
	"os"
	"syscall"

	"github.com/rollway/rollway/internal/disk"
)

// unname removes a file and returns it if it is large and nobody else has it:
// under another name, open or mapped. Else f is nil.
func unname(name string) (f *os.File, err error) {
	f, openErr := os.OpenFile(name, os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	err = os.Remove(name)
	if openErr != nil {
		return nil, err
	}
	if err != nil || !unused(f) {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// unused reports whether f is large and will be gone when it is closed.
func unused(f *os.File) bool {
	if info, err := f.Stat(); err != nil || info.Size() <= freePiece {
		return false
	}
	unused, _ := disk.Unused(f)
	return unused
}
