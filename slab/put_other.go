//go:build !amd64 || race || msan || asan || purego

package slab

const hasPutLong = false

func putLong(*opened, *byte, int) { panic("not for this processor") }
