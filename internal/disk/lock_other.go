//go:build !windows && (!unix || solaris || illumos || aix)

package disk

import (
	"errors"
	"os"
)

// TryLock cannot lock here.
func TryLock(*os.File, bool) error { return errors.ErrUnsupported }

// Unlock has nothing to release here.
func Unlock(*os.File) {}
