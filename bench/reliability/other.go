//go:build !linux

package reliability

import (
	"errors"
	"io"
)

// Writers lists nobody: the kit runs on linux.
func Writers() []Writer { return nil }

// Missing says what the fault needs.
func (f Fault) Missing() string { return "linux" }

// FileSystems are not asked for here.
func FileSystems(string) (disk, slabs string) { return "", "" }

// Run returns an error here.
func Run(io.Writer, Settings) ([]Try, error) {
	return nil, errors.New("the fault kit runs on linux: it kills, mounts and traces processes")
}
