package remote

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ackTimeoutOption is the socket option that setAckTimeout sets, in ackTimeoutUnits.
const ackTimeoutOption, ackTimeoutUnit = unix.TCP_USER_TIMEOUT, time.Millisecond

// unacked returns how many bytes, a FIN counted as one, the peer's system has
// not acknowledged, or the error that ended the connection.
func unacked(c net.Conn) (n int, err error) {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return 0, nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return 0, err
	}
	ctlErr := raw.Control(func(fd uintptr) {
		// The error last: a reset that comes in between leaves n above zero.
		if n, err = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ); err != nil {
			return
		}
		var code int
		if code, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR); err == nil && code != 0 {
			err = syscall.Errno(code)
		}
	})
	if ctlErr != nil {
		return 0, ctlErr
	}
	return n, err
}
