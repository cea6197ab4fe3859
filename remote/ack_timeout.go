//go:build linux || darwin

package remote

import (
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// setAckTimeout lets the system end a TCP connection whose peer acknowledges nothing, or
// (Linux) accepts nothing, for that long instead of a quarter of an hour.
func setAckTimeout(network string, c syscall.RawConn, limit time.Duration) error {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	return c.Control(func(fd uintptr) {
		// A system that does not know it waits longer.
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, ackTimeoutOption, int(max(limit, ackTimeoutUnit)/ackTimeoutUnit))
	})
}
