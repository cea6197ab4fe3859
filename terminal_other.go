//go:build !linux && !darwin && !windows

package rollway

func isTerminalFd(uintptr) bool { return false }
