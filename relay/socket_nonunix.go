//go:build !unix

package relay

import (
	"errors"
	"syscall"
)

// canWait says whether a socket can be waited on without a buffer to read into.
const canWait = false

var errUnsupported = errors.New("sockets cannot be waited on here")

func readSocket(uintptr, []byte) (int, error) { return 0, errUnsupported }

func (p *pump) readSocket() (int, error) { return 0, errUnsupported }

func (p *pump) writeSocket([]byte) error { return errUnsupported }

// inlineUrgent has the system keep urgent bytes in the stream, where they stand.
func (s *peer) inlineUrgent() {
	const soOOBInline = 0x100 // of winsock2.h
	_ = s.raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(syscall.Handle(fd), syscall.SOL_SOCKET, soOOBInline, 1)
	})
}
