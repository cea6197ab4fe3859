package direct

import (
	"os"

	"golang.org/x/sys/unix"
)

// noCache has f bypass the cache. Any length and offset will do. It is compiled
// and vetted for darwin, and has not been run there.
func noCache(f *os.File) error {
	_, err := unix.FcntlInt(f.Fd(), unix.F_NOCACHE, 1)
	return err
}
