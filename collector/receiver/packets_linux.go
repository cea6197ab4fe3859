package receiver

import (
	"encoding/binary"
	"net"
	"syscall"
)

// countDrops asks the system to tell with each datagram how many it has dropped
// before.
func countDrops(conn *net.UDPConn) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return // closed, as the next read will say
	}
	raw.Control(func(fd uintptr) {
		// A system that cannot leaves the count at zero.
		_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RXQ_OVFL, 1)
	})
}

// dropsIn finds that number, of all time, in a control message.
func dropsIn(control []byte) (n uint32, ok bool) {
	data := syscall.CmsgLen(0)
	if len(control) < data+4 {
		return 0, false
	}
	kind := control[syscall.SizeofCmsghdr-8:]
	level, option := binary.NativeEndian.Uint32(kind), binary.NativeEndian.Uint32(kind[4:])
	if level != syscall.SOL_SOCKET || option != syscall.SO_RXQ_OVFL {
		return 0, false
	}
	return binary.NativeEndian.Uint32(control[data:]), true
}
