//go:build unix

package admission

import (
	"net"
	"os"
	"syscall"
)

// acceptNow accepts a connection that is complete. It returns nil if there is none, or
// if l is not a listener of the system.
func acceptNow(l net.Listener) net.Conn {
	s, is := l.(syscall.Conn)
	if !is {
		return nil
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return nil
	}
	fd := -1
	raw.Control(func(listener uintptr) { // fails if l is closed
		for err = syscall.EINTR; err == syscall.EINTR || err == syscall.ECONNABORTED; {
			fd, _, err = syscall.Accept(int(listener)) // does not block: the socket does not
		}
	})
	if err != nil || fd < 0 {
		return nil
	}
	syscall.CloseOnExec(fd)
	f := os.NewFile(uintptr(fd), "")
	defer f.Close() // c has a copy
	c, err := net.FileConn(f)
	if err != nil {
		return nil
	}
	return c
}
