//go:build !unix

package admission

import "net"

// acceptNow returns nil: here the system cannot be asked without waiting.
func acceptNow(net.Listener) net.Conn { return nil }
