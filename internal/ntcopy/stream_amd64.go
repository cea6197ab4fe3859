//go:build !race

package ntcopy

import "unsafe"

const hasStream = true

func address(b []byte) int { return int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// stream copies n bytes, a multiple of line, to dst, which is on a line.
//
//go:noescape
func stream(dst, src *byte, n int)
