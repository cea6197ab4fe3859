//go:build !linux && !darwin

package remote

import (
	"syscall"
	"time"
)

// setAckTimeout leaves it to the system how long a peer may be silent.
func setAckTimeout(string, syscall.RawConn, time.Duration) error { return nil }
