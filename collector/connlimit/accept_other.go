//go:build !unix

package connlimit

import "net"

// acceptNow returns nil: here the system cannot be asked without waiting.
func acceptNow(net.Listener) net.Conn { return nil }
