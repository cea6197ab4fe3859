package slabfile

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// allocate allocates the first n bytes of f and keeps what is there.
func allocate(f *os.File, n int64) error { return fill(f, n) }

func populate([]byte) bool { return false }

// fileSystem reports whether f is on a network file system, or in memory.
func fileSystem(f *os.File) (remote, memory bool) {
	var st unix.Statfs_t
	if unix.Fstatfs(int(f.Fd()), &st) != nil {
		return false, false
	}
	name := unix.ByteSliceToString(st.Fstypename[:])
	return slices.Contains([]string{"nfs", "smbfs", "afpfs", "webdav"}, name), name == "tmpfs"
}
