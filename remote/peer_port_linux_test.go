package remote_test

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// reserve returns an address of the loopback at which peers of the test can
// listen again and again: between two of them nobody else gets the port, and
// connections to it are refused. A socket that is bound and does not listen
// keeps it, as those that listen allow the reuse of addresses too.
func reserve(t testing.TB) string {
	t.Helper()
	_, addr := reserveOf(t, unix.SOCK_STREAM)
	return addr
}

// reserveUDP is reserve for UDP. The socket that keeps the port is connected to
// another, so that it gets nothing of what is sent to it.
func reserveUDP(t testing.TB) string {
	t.Helper()
	fd, addr := reserveOf(t, unix.SOCK_DGRAM)
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: 9, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	return addr
}

// shareAddress lets a socket listen at what reserveUDP returned.
func shareAddress(_, _ string, c syscall.RawConn) (err error) {
	ctlErr := c.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	})
	return errors.Join(ctlErr, err)
}

func reserveOf(t testing.TB, kind int) (fd int, addr string) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		t.Fatal(err)
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fd, fmt.Sprintf("127.0.0.1:%d", name.(*unix.SockaddrInet4).Port)
}
