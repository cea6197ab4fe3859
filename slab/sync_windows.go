package slab

import "syscall"

// errNoSyncHandle is ERROR_INVALID_HANDLE, which FlushFileBuffers answers for
// a console.
const errNoSyncHandle = syscall.Errno(6)
