//go:build unix

package disk

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rollway/rollway/internal/testkit"
)

// What is no regular file is neither followed, nor changed, nor waited for.
func TestOpensRegularFilesOnly(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	socket, err := net.Listen("unix", at("socket"))
	testkit.OK(t, err)
	defer socket.Close()
	if err := errors.Join(
		os.WriteFile(at("target"), []byte("precious"), 0o600),
		os.Symlink(at("target"), at("link")),
		os.Symlink(at("missing"), at("dangling")),
		syscall.Mkfifo(at("fifo"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	for name, kind := range map[string]string{
		at("link"): "a symbolic link", at("dangling"): "a symbolic link", at("fifo"): "a FIFO", at("socket"): "a socket", os.DevNull: "a device",
	} {
		for _, flag := range []int{os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_RDWR | os.O_CREATE, os.O_RDWR | os.O_CREATE | os.O_TRUNC, os.O_RDWR | os.O_CREATE | os.O_EXCL} {
			f, err := Real{}.OpenFile(name, flag, 0o640)
			if !errors.Is(err, ErrNotFile) || !strings.Contains(err.Error(), name+": not a regular file but "+kind) {
				t.Errorf("%s with %x: %v", name, flag, err)
			}
			if err == nil {
				f.Close()
			}
		}
		if _, err := (Real{}).Lock(name, 0o640); !errors.Is(err, ErrNotFile) {
			t.Errorf("lock of %s: %v", name, err)
		}
	}
	if b, err := os.ReadFile(at("target")); string(b) != "precious" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := os.Lstat(at("missing")); err == nil {
		t.Error("the target of a link was made")
	}

	// A link that is not the last part of the name is followed.
	if err := errors.Join(os.Mkdir(at("folder"), 0o700), os.Symlink(at("folder"), at("folder-link"))); err != nil {
		t.Fatal(err)
	}
	f, err := Real{}.OpenFile(at("folder-link/file"), os.O_RDWR|os.O_CREATE, 0o640)
	testkit.OK(t, err)
	defer f.Close()
	c, err := f.(*realFile).SyscallConn()
	testkit.OK(t, err)
	if err := c.Control(func(fd uintptr) {
		if flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_GETFL, 0); errno != 0 || flags&syscall.O_NONBLOCK != 0 {
			t.Errorf("the file is open with flags %x, %v", flags, errno)
		}
	}); err != nil {
		t.Fatal(err)
	}
}
