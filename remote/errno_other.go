//go:build !windows

package remote

import "syscall"

// The answers of the system's sockets.
const (
	errnoRefused   = syscall.ECONNREFUSED
	errnoReset     = syscall.ECONNRESET
	errnoTooLong   = syscall.EMSGSIZE
	errnoNoBuffers = syscall.ENOBUFS
	errnoPrototype = syscall.EPROTOTYPE
)

// hasUnixgram says whether the system has local datagram sockets.
const hasUnixgram = true
