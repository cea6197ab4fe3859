package relay

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

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

// set sets an option of the socket. Some kinds of socket do not have it, which is
// no error.
func (s *side) set(level, option, value int) {
	if s.raw != nil {
		_ = s.raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), level, option, value) })
	}
}

// limitUnsent bounds how many bytes the system takes before it can send them; 0: the
// system's default.
func (s *side) limitUnsent(sizeBytes int) {
	s.set(unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, sizeBytes)
}

// setReceiveBuffer sets how many bytes the system takes before they are read. Unless
// that is fixed, the system tunes the size from there on.
func (s *side) setReceiveBuffer(sizeBytes int, fixed bool) {
	s.set(unix.SOL_SOCKET, unix.SO_RCVBUF, sizeBytes)
	if !fixed {
		s.set(unix.SOL_SOCKET, unix.SO_BUF_LOCK, 0)
	}
}

// setLowWater sets how many bytes make a TCP socket readable.
func (s *side) setLowWater(sizeBytes int) { s.set(unix.SOL_SOCKET, unix.SO_RCVLOWAT, sizeBytes) }
