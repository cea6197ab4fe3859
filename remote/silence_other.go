//go:build !linux && !darwin

package remote

import (
	"syscall"
	"time"
)

// limitSilence leaves it to the system how long a peer may be silent.
func limitSilence(string, syscall.RawConn, time.Duration) error { return nil }
