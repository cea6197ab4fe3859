//go:build unix && !solaris && !illumos && !aix

package disk

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rollway/rollway/internal/testkit"
)

// A child that is being started shares every descriptor until its program runs.
// A lock that is given back meanwhile is free.
func TestLockIsFreeWhileAChildStarts(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	l, err := Real{}.Lock(name, 0o640)
	testkit.OK(t, err)
	childs, err := syscall.Dup(int(l.(interface{ Fd() uintptr }).Fd()))
	testkit.OK(t, err)
	defer syscall.Close(childs)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Real{}.Lock(name, 0o640)
	testkit.OK(t, err)
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}
