//go:build !race && !msan && !asan && !purego

package jsonwalk

// masks is masksOf with the vectors that every amd64 processor has.
//
//go:noescape
func masks(b *[block]byte) (slashes, stops uint64)
