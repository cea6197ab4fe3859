//go:build !amd64 || race || msan || asan || purego

package jsonwalk

func masks(b *[block]byte) (slashes, quotes, ctrls uint64) { return masksOf(b) }

func drop(out, b *[beyond]byte, m uint64) { dropEach(out, b, m) }
