//go:build !linux

package stuck

import "errors"

type opener struct{}

// Writers lists nobody: the kit runs on linux.
func Writers() []Writer { return nil }

// Try returns an error here.
func (s Settings) Try(Writer, string, string) (Try, error) {
	return Try{}, errors.New("stuck destinations are tried on linux: pipes, mounts and signals are")
}

// StopCollector returns an error here.
func (s *Settings) StopCollector(string) (end func(), err error) {
	return nil, errors.New("a collector is stopped by a signal of linux")
}
