//go:build unix

package relay

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// canWait says whether a socket can be waited on without a buffer to read into.
const canWait = true

// readSocket reads once: errWouldBlock if there is nothing, io.EOF at the end.
func readSocket(fd uintptr, p []byte) (n int, err error) {
	for {
		n, err = unix.Read(int(fd), p)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return 0, errWouldBlock
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
		p.try = p.tryRead
	}
	if err := p.src.raw.Read(p.try); err != nil {
		return 0, err
	}
	return p.n, p.err
}

func (p *pump) tryRead(fd uintptr) bool {
	if p.buf == nil && p.mustCopyUnbuffered() {
		p.n, p.err = 0, errNoBuffer
		p.lowWater(false)
		return ready(fd, unix.POLLIN)
	}
	p.acquireBuffer()
	p.n, p.err = readSocket(fd, p.buf.b)
	if p.err == errWouldBlock {
		if !p.shouldWait() {
			return p.tryRead(fd)
		}
		p.releaseBuffer()
		return false
	}
	return true
}

// writeSocket writes all of b, and counts each part as the socket takes it.
func (p *pump) writeSocket(b []byte) error {
	if p.put == nil {
		p.put = p.tryWrite
	}
	p.out, p.err = b, nil
	err := p.dst.raw.Write(p.put)
	p.unblock()
	if err == nil {
		err = p.err
	}
	p.out = nil
	return err
}

func (p *pump) tryWrite(fd uintptr) bool {
	for len(p.out) > 0 {
		n, err := unix.Write(int(fd), p.out)
		switch err {
		case nil:
			p.out = p.out[n:]
			p.moved(n)
		case unix.EINTR:
		case unix.EAGAIN:
			p.block()
			return false
		default:
			p.err = os.NewSyscallError("write", err)
			return true
		}
	}
	return true
}

// inlineUrgent has the system keep urgent bytes in the stream, where they stand.
// Otherwise reads skip them, and splice(2) never gets past one.
func (s *peer) inlineUrgent() {
	_ = s.raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_OOBINLINE, 1) // some sockets have none
	})
}

// ready reports whether a socket has bytes, an end or an error to read (POLLIN), or takes
// bytes now or has failed (POLLOUT). It takes no error, as a receive would.
func ready(fd uintptr, events int16) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: events}}
	for {
		n, err := unix.Poll(fds, 0)
		if err != unix.EINTR {
			return n > 0 || err != nil
		}
	}
}
