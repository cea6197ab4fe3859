//go:build !linux

package measure

import "errors"

// Realtime is for Linux.
func Realtime() error { return errors.ErrUnsupported }

// Timeshared is for Linux too.
func Timeshared() error { return errors.ErrUnsupported }
