package relay

import (
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// awaitReset waits for an error of a socket from which everything was read, and
// returns it, or why it cannot wait any longer.
func (s *side) awaitReset() error {
	if s.raw == nil {
		return nil
	}
	var found error
	err := s.raw.Read(func(fd uintptr) bool {
		code, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR)
		if err == nil && code != 0 {
			found = syscall.Errno(code)
		}
		return found != nil
	})
	if err != nil {
		return err
	}
	return found
}

// isDead reports whether a plain TCP socket has no connection any more.
func (s *side) isDead() (dead bool) {
	if _, ok := s.conn.(*net.TCPConn); !ok || s.raw == nil {
		return false
	}
	_ = s.raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		dead = err == nil && info.State == stateClosed
	})
	return dead
}

const stateClosed = 7 // TCP_CLOSE of the kernel

// flush waits until the peer's system has what was written, and gives up after
// no progress for stall. A reset throws away what has not left.
func (s *side) flush(stall time.Duration) {
	if _, ok := s.socket.(*net.TCPConn); !ok || s.raw == nil {
		return
	}
	const longest = 50 * time.Millisecond
	before, since := 0, time.Now()
	for pause := time.Millisecond; ; pause = min(2*pause, longest) {
		left := s.unsent()
		if left == 0 {
			return
		}
		if left != before {
			before, since = left, time.Now()
		} else if time.Since(since) > stall {
			return
		}
		time.Sleep(pause)
	}
}

// unsent is how many bytes the peer's system has not acknowledged, or the peer of
// a unix socket not read; 0 if it never will.
func (s *side) unsent() (n int) {
	if s.raw == nil {
		return 0
	}
	_ = s.raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil || info.State != stateClosed {
			n, _ = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ)
		}
	})
	return n
}

// write writes all of p. With more it tells the system that more follows at once:
// what does not fill a segment may wait for that.
func (w *wire) write(p []byte, more bool) (n int, err error) {
	if w.out.try == nil {
		w.out.try = w.tryWrite
	}
	w.out.p, w.out.err, w.out.flags = p, nil, unix.MSG_NOSIGNAL
	if more {
		w.out.flags |= unix.MSG_MORE
	}
	if err = w.raw.Write(w.out.try); err == nil {
		err = w.out.err
	}
	n = len(p) - len(w.out.p)
	w.out.p = nil
	return n, err
}

func (w *wire) tryWrite(fd uintptr) bool {
	for len(w.out.p) > 0 {
		n, err := unix.SendmsgN(int(fd), w.out.p, nil, nil, w.out.flags)
		switch err {
		case nil:
			w.out.p = w.out.p[n:]
		case unix.EINTR:
		case unix.EAGAIN:
			if w.pumped.Load() {
				w.full()
			}
			return false
		default:
			w.out.err = os.NewSyscallError("sendmsg", err)
			return true
		}
	}
	return true
}
