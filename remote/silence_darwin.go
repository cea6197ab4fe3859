package remote

import (
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// limitSilence lets the system end a TCP connection whose peer acknowledges
// nothing of what was sent for so long.
func limitSilence(network string, c syscall.RawConn, limit time.Duration) error {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	return c.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_RXT_CONNDROPTIME, int(max(limit, time.Second).Seconds()))
	})
}
