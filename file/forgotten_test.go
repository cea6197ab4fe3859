//go:build linux || darwin

package file_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/testkit"
)

// A File that nobody closes and nobody has any more is collected, and its
// descriptor with it.
func TestForgottenFileIsCollected(t *testing.T) {
	dir := t.TempDir()
	before := openUnder(t, dir)
	for i := range 10 {
		forget(t, filepath.Join(dir, fmt.Sprint("log", i)))
	}
	if n := openUnder(t, dir); before != 0 || n == 0 {
		t.Fatalf("%d files open before, %d after ten were opened", before, n)
	}
	eventually(t, "the forgotten files are closed", func() bool {
		runtime.GC()
		return openUnder(t, dir) == 0
	})
}

//go:noinline
func forget(t *testing.T, path string) {
	f, err := file.Open(path, file.Options{})
	testkit.OK(t, err)
	write(t, f, "line\n")
}

// openUnder counts the descriptors of regular files in dir.
func openUnder(t *testing.T, dir string) (n int) {
	t.Helper()
	inside := map[uint64]bool{}
	entries, err := os.ReadDir(dir)
	testkit.OK(t, err)
	for _, e := range entries {
		info, err := e.Info()
		testkit.OK(t, err)
		inside[info.Sys().(*syscall.Stat_t).Ino] = true
	}
	for fd := range 1024 {
		var st syscall.Stat_t
		if syscall.Fstat(fd, &st) == nil && st.Mode&syscall.S_IFMT == syscall.S_IFREG && inside[st.Ino] {
			n++
		}
	}
	return n
}
