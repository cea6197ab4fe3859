//go:build !amd64 || race || msan || asan || purego

package ntcopy

// The race detector does not see what assembly reads and writes.
const hasVectors = false

func address([]byte) int { return 0 }

func lines(dst, src *byte, n int) int { panic("not for this processor") }

func stream(dst, src *byte, n int) int { panic("not for this processor") }
