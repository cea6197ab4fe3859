//go:build !windows && (!unix || solaris || illumos || aix)

package disk

import (
	"errors"
	"os"
)

// TryLock cannot lock here.
func TryLock(*os.File) error { return errors.ErrUnsupported }

func unlockFile(*os.File) {}
