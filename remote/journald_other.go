//go:build !linux

package remote

import (
	"net"
)

const hasJournald = false

func putFile(net.Conn, []byte) error { return errnoTooLong }
