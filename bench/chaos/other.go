//go:build !linux

package chaos

import (
	"errors"
	"io"
)

// Missing says what the fault needs.
func (f Fault) Missing() string { return "linux" }

// Run returns an error here.
func Run(io.Writer, Settings) ([]Try, error) {
	return nil, errors.New("the kit runs on linux: it kills, mounts and traces processes")
}
