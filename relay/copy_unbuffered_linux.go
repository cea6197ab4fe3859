package relay

import (
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// copyUnbuffered copies once without a pipe: it peeks at the source,
// writes as much as the destination accepts at once, and removes that much from the
// source. So it holds nothing while the destination accepts nothing.
func (p *pump) copyUnbuffered() (ended bool, at *peer, err error) {
	err = p.dst.raw.Write(func(fd uintptr) bool {
		if !writable(fd) {
			p.block()
			return false
		}
		return true
	})
	p.unblock()
	if err != nil {
		return false, p.dst, err
	}
	p.buf = p.conn.relay.buffers.getLarge()
	defer p.releaseBuffer()
	ahead := p.receive(unix.MSG_PEEK, len(p.buf.b))
	switch {
	case p.err == unix.EAGAIN:
		return false, nil, nil
	case p.err != nil:
		return false, p.src, os.NewSyscallError("recv", p.err)
	case ahead == 0:
		return true, nil, nil
	}
	taken := p.once(p.dst.raw, func(fd int) (int, error) { return unix.Write(fd, p.buf.b[:ahead]) })
	if p.err != nil && p.err != unix.EAGAIN {
		return false, p.dst, os.NewSyscallError("write", p.err)
	}
	p.moved(taken)
	discard := 0
	if _, ok := p.src.conn.(*net.TCPConn); ok {
		discard = unix.MSG_TRUNC // copies nothing
	}
	for taken > 0 {
		n := p.receive(discard, taken)
		if p.err != nil {
			return false, p.src, os.NewSyscallError("recv", p.err)
		}
		taken -= n
	}
	return false, nil, nil
}

// receive receives up to most bytes into the buffer, without waiting.
func (p *pump) receive(flags, most int) int {
	return p.once(p.src.raw, func(fd int) (n int, err error) {
		n, _, err = unix.Recvfrom(fd, p.buf.b[:most], flags)
		return n, err
	})
}

// once makes a call on a socket, without waiting. Its error is in p.err.
func (p *pump) once(raw syscall.RawConn, call func(fd int) (int, error)) (n int) {
	err := raw.Control(func(fd uintptr) {
		for {
			if n, p.err = call(int(fd)); p.err != unix.EINTR {
				return
			}
		}
	})
	if err != nil {
		p.err = err
	}
	return max(n, 0)
}

// mustCopyUnbuffered reports whether a direction between plain sockets must not
// hold a buffer while it waits.
func (p *pump) mustCopyUnbuffered() bool {
	return p.spliceable() && p.conn.relay.buffers.inUse.Load() >= p.conn.relay.buffers.many
}
