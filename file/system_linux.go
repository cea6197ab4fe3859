package file

import "syscall"

// What a file system says of one that it finds damaged.
func init() { broken = append(broken, syscall.EUCLEAN) }
