//go:build unix

package main

import (
	"os"
	"syscall"
)

// hangup asks a running program to read its files again.
var hangup = []os.Signal{syscall.SIGHUP}
