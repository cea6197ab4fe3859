//go:build !race && !msan && !asan && !purego

package ntcopy

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

var hasVectors = cpu.X86.HasAVX2 && cpu.X86.HasPOPCNT

func address(b []byte) int { return int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// lines is Lines for n bytes, vector or more.
//
//go:noescape
func lines(dst, src *byte, n int) (newlines int)

// stream is Lines for n bytes, a multiple of line, past the caches to dst, which
// is on a line.
//
//go:noescape
func stream(dst, src *byte, n int) (newlines int)
