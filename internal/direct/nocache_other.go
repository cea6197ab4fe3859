//go:build !linux && !darwin

package direct

import (
	"errors"
	"fmt"
	"os"
)

func noCache(*os.File) error { return fmt.Errorf("direct I/O: %w", errors.ErrUnsupported) }
