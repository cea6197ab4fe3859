//go:build !amd64 || race || msan || asan || purego

package jsonline

const hasCopyLong = false

func copyLong(*byte, *byte, int) bool { panic("not for this processor") }
