//go:build !linux

package segment

import "os"

// unname removes a file. f is nil.
func unname(name string) (f *os.File, err error) { return nil, os.Remove(name) }
