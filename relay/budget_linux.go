package relay

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// defaultBudget is a sixteenth of what the system lets TCP have before it cuts
// everybody short; 0: it does not tell.
func defaultBudget() int64 {
	text, err := os.ReadFile("/proc/sys/net/ipv4/tcp_mem")
	if err != nil {
		return 0
	}
	var low, pressure int64
	if _, err := fmt.Sscan(string(text), &low, &pressure); err != nil {
		return 0
	}
	return pressure * int64(os.Getpagesize()) / 16
}

// set sets an option of a socket, which may not know it.
func (s *side) set(level, option, value int) {
	if s.raw != nil {
		_ = s.raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), level, option, value) })
	}
}

// limitUnsent bounds what the system takes of what it cannot send yet; 0: it does not.
func (s *side) limitUnsent(sizeBytes int) {
	s.set(unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, sizeBytes)
}

// receiveBuffer is the size to give to setReceiveBuffer to have what there is.
func (s *side) receiveBuffer() (sizeBytes int) {
	if s.raw != nil {
		_ = s.raw.Control(func(fd uintptr) { sizeBytes, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF) })
	}
	return sizeBytes / 2 // the system doubles what it is given
}

// setReceiveBuffer sets how much the system takes before it is read. Unless that
// is fixed the system goes on to tune it.
func (s *side) setReceiveBuffer(sizeBytes int, fixed bool) {
	s.set(unix.SOL_SOCKET, unix.SO_RCVBUF, sizeBytes)
	if !fixed {
		s.set(unix.SOL_SOCKET, unix.SO_BUF_LOCK, 0)
	}
}

// setLowWater sets how many bytes make a TCP socket readable.
func (s *side) setLowWater(sizeBytes int) { s.set(unix.SOL_SOCKET, unix.SO_RCVLOWAT, sizeBytes) }
