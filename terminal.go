package rollway

import (
	"io"
	"os"
)

// isTerminal reports whether w is a file that is a terminal. It does not use
// Fd, which would make a pipe or a socket blocking.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || f == nil {
		return false
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return false
	}
	is := false
	err = conn.Control(func(fd uintptr) { is = isTerminalFd(fd) })
	return err == nil && is
}
