package relay

import (
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// awaitReset waits for an error of a socket that was read to its end, and returns it. It
// also returns the error that ends the wait.
func (s *peer) awaitReset() error {
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
func (s *peer) isDead() (dead bool) {
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

// flush waits until the peer's system has acknowledged all bytes, and gives up after no
// progress for stall. A reset discards bytes that were not sent yet.
func (s *peer) flush(stall time.Duration) {
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
func (s *peer) unsent() (n int) {
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
func (w *tlsSocket) write(p []byte, more bool) (n int, err error) {
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

func (w *tlsSocket) tryWrite(fd uintptr) bool {
	for len(w.out.p) > 0 {
		n, err := unix.SendmsgN(int(fd), w.out.p, nil, nil, w.out.flags)
		switch err {
		case nil:
			w.out.p = w.out.p[n:]
		case unix.EINTR:
		case unix.EAGAIN:
			if w.pumping.Load() {
				w.onBlocked()
			}
			return false
		default:
			w.out.err = os.NewSyscallError("sendmsg", err)
			return true
		}
	}
	return true
}

// set sets an option of the socket. Some kinds of socket do not have it, which is
// no error.
func (s *peer) set(level, option, value int) {
	if s.raw != nil {
		_ = s.raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), level, option, value) })
	}
}

// limitUnsent bounds how many bytes the system takes before it can send them; 0: the
// system's default.
func (s *peer) limitUnsent(sizeBytes int) {
	s.set(unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, sizeBytes)
}

// setReceiveBuffer sets how many bytes the system takes before they are read. Unless
// that is fixed, the system tunes the size from there on.
func (s *peer) setReceiveBuffer(sizeBytes int, fixed bool) {
	s.set(unix.SOL_SOCKET, unix.SO_RCVBUF, sizeBytes)
	if !fixed {
		s.set(unix.SOL_SOCKET, unix.SO_BUF_LOCK, 0)
	}
}

// setLowWater sets how many bytes make a TCP socket readable.
func (s *peer) setLowWater(sizeBytes int) { s.set(unix.SOL_SOCKET, unix.SO_RCVLOWAT, sizeBytes) }

// defaultBudget is a sixteenth of the memory that TCP may have before the system
// limits all sockets: the second value of tcp_mem. A container cannot read that. Its
// default is about a sixteenth of all memory, which is then taken for it. 0: neither
// is known.
func defaultBudget() int64 {
	var low, pressure int64
	if text, err := os.ReadFile("/proc/sys/net/ipv4/tcp_mem"); err == nil {
		if _, err := fmt.Sscan(string(text), &low, &pressure); err == nil {
			return pressure * int64(os.Getpagesize()) / 16
		}
	}
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(uint64(info.Totalram) * uint64(info.Unit) / 16 / 16)
}
