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

// With Owned a file of another user is neither read, cut nor listed as a file to open, unless
// the folder is that user's.
func TestOpensOwnFilesOnly(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("only root can make files of others")
		return
	}
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	testkit.OK(t, os.WriteFile(name, []byte("precious"), 0o666))
	testkit.OK(t, os.Chown(name, 12345, 12345))
	owned := Real{Owned: true}
	open := func(flag int) error {
		f, err := owned.OpenFile(name, flag, 0o640)
		if err == nil {
			err = f.Close()
		}
		return err
	}
	for _, flag := range []int{os.O_RDONLY, os.O_RDWR | os.O_CREATE | os.O_TRUNC} {
		if err := open(flag); !errors.Is(err, ErrOwner) || !strings.Contains(err.Error(), "12345") {
			t.Errorf("%x: %v", flag, err)
		}
	}
	if _, err := owned.Lock(name, 0o640); !errors.Is(err, ErrOwner) {
		t.Errorf("lock: %v", err)
	}
	if list, err := owned.List(dir); err != nil || !errors.Is(list[0].Refused, ErrOwner) {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := ReadConfig(name, 10); !errors.Is(err, ErrOwner) {
		t.Errorf("a configuration: %v", err)
	}
	if b, err := os.ReadFile(name); string(b) != "precious" {
		t.Errorf("%q, %v", b, err)
	}
	testkit.OK(t, os.Chown(dir, 12345, 12345))
	if err := open(os.O_RDWR | os.O_TRUNC); err != nil {
		t.Errorf("in a folder of the same user: %v", err)
	}
	if b, err := os.ReadFile(name); len(b) > 0 {
		t.Errorf("%q after O_TRUNC, %v", b, err)
	}
}

// A configuration file may be a link, but what it leads to must be a file; a FIFO is not
// waited for.
func TestReadConfig(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	testkit.OK(t, os.WriteFile(at("target"), []byte("a: b"), 0o604))
	testkit.OK(t, errors.Join(os.Symlink(at("target"), at("link")), syscall.Mkfifo(at("fifo"), 0o600), os.Symlink(at("fifo"), at("fifo-link"))))
	if b, err := ReadConfig(at("link"), 3); string(b) != "a: " || err != nil || OthersMay(at("link")) != "read" {
		t.Errorf("%q, %v, others may %q", b, err, OthersMay(at("link")))
	}
	for _, name := range []string{at("fifo"), at("fifo-link"), dir, os.DevNull} {
		if _, err := ReadConfig(name, 3); !errors.Is(err, ErrNotFile) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
