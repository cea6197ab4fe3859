//go:build !race && !msan && !asan && !purego

package jsonline

// copyLong is copyClean for n bytes, n >= 16, with the vectors that every
// amd64 processor has.
//
//go:noescape
func copyLong(dst, s *byte, n int) bool

const hasCopyLong = true
