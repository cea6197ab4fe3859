package slabfile

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// allocate gives the first n bytes of f blocks; what is there stays.
func allocate(f *os.File, n int64) error { return fill(f, n) }

// populate makes all pages of mem present.
func populate(mem []byte) error {
	touch(mem)
	return nil
}

// checkFileSystem refuses those whose locks and mappings another machine may
// not see.
func checkFileSystem(f *os.File) error {
	if slices.Contains([]string{"nfs", "smbfs", "afpfs", "webdav"}, kind(f)) {
		return fmt.Errorf("it is on a network's file system, which does not keep locks and mapped memory together: %w", errors.ErrUnsupported)
	}
	return nil
}

func inMemory(f *os.File) bool { return kind(f) == "tmpfs" }

// kind is the file system's name, empty if that is not known.
func kind(f *os.File) string {
	var st unix.Statfs_t
	if f == nil || unix.Fstatfs(int(f.Fd()), &st) != nil {
		return ""
	}
	return unix.ByteSliceToString(st.Fstypename[:])
}
