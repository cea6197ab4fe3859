//go:build !unix

package slab

// shortSleep reports that the system has no sleep that is short enough.
func shortSleep(int) bool { return false }
