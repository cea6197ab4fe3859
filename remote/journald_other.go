//go:build !linux

package remote

import (
	"net"
)

const hasJournald = false

func sendMemfd(net.Conn, []byte) error { return errnoTooLong }
