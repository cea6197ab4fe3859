package relay

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// defaultBudget is a sixteenth of what the system lets TCP have before it cuts
// everybody short. A container is not told that: it is a sixteenth of the memory
// unless somebody has set it. 0: nothing is known.
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
