//go:build !unix

package main

import (
	"os"
	"syscall"
)

// hangup asks a running program to read its files again; where it cannot be
// sent, nothing does.
var hangup = []os.Signal{syscall.SIGHUP}
