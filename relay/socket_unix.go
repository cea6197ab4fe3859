//go:build unix

package relay

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// canWait says whether a socket can be waited on without a buffer to read into.
const canWait = true

// readSocket reads once: errWait if there is nothing, io.EOF at the end.
func readSocket(fd uintptr, p []byte) (n int, err error) {
	for {
		n, err = unix.Read(int(fd), p)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return 0, errWait
		case err != nil:
			return 0, os.NewSyscallError("read", err)
		case n == 0 && len(p) > 0:
			return 0, io.EOF
		}
		return n, nil
	}
}

// readSocket waits until there are bytes, and only then takes a buffer.
func (p *pump) readSocket() (n int, err error) {
	if p.try == nil {
		p.try = func(fd uintptr) bool {
			p.getBuffer()
			p.n, p.err = readSocket(fd, p.buf.b)
			if p.err == errWait {
				p.putBuffer()
				return false
			}
			return true
		}
	}
	if err := p.src.raw.Read(p.try); err != nil {
		return 0, err
	}
	return p.n, p.err
}

// readable reports whether a socket has bytes, an end or an error to read. It
// takes none of them, which a receive would do with an error.
func readable(fd uintptr) bool { return ready(fd, unix.POLLIN) }

// writable reports whether a socket takes bytes now, or has failed.
func writable(fd uintptr) bool { return ready(fd, unix.POLLOUT) }

func ready(fd uintptr, events int16) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: events}}
	for {
		n, err := unix.Poll(fds, 0)
		if err != unix.EINTR {
			return n > 0 || err != nil
		}
	}
}
