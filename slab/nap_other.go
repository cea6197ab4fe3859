//go:build !unix

package slab

// nap reports that there is no way to sleep that is short enough.
func nap(int) bool { return false }
