//go:build !amd64 || race || msan || asan || purego

package jsonwalk

func masks(b *[block]byte) (slashes, stops uint64) { return masksOf(b) }
