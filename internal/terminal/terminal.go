// Package terminal tells whether a writer is a terminal.
package terminal

import (
	"io"
	"os"
)

// Is reports whether w is a file that is a terminal. It does not use Fd, which
// would make a pipe or a socket blocking.
func Is(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || f == nil {
		return false
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return false
	}
	is := false
	err = conn.Control(func(fd uintptr) { is = isTerminal(fd) })
	return err == nil && is
}
