//go:build !windows && (!unix || solaris || illumos || aix)

package disk

import (
	"errors"
	"os"
)

func lockFile(*os.File) error { return errors.ErrUnsupported }
