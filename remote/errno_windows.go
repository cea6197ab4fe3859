package remote

import "golang.org/x/sys/windows"

// The answers of Windows' sockets. The errors with these names in syscall are
// invented there and never come from a socket.
const (
	errnoRefused   = windows.WSAECONNREFUSED
	errnoReset     = windows.WSAECONNRESET // "port unreachable" too
	errnoTooLong   = windows.WSAEMSGSIZE
	errnoNoBuffers = windows.WSAENOBUFS
	errnoPrototype = windows.WSAEPROTOTYPE
)

// hasUnixgram says whether the system has local datagram sockets.
const hasUnixgram = false
