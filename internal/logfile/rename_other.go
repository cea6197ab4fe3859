//go:build !linux && !darwin

package logfile

import "errors"

func renameExclusive(string, string) error { return errors.ErrUnsupported }
