package file

import "syscall"

// The error of a file system for a damaged file.
func init() { broken = append(broken, syscall.EUCLEAN) }
