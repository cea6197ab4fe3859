//go:build !windows

package slab

import "syscall"

// errNoSyncHandle is what a terminal or pipe answers to fsync.
const errNoSyncHandle = syscall.EINVAL
