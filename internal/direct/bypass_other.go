//go:build !linux && !darwin

package direct

import "os"

// Bypass fails: this system has no direct I/O.
func Bypass(*os.File, bool) error { return Supported(Direct) }
