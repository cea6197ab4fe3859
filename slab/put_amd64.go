//go:build !race && !msan && !asan && !purego

package slab

import "golang.org/x/sys/cpu"

// putLong is put and Unlock for n bytes from p on, n >= longPut. It reads each
// byte once, to copy and to count it.
//
//go:noescape
func putLong(o *opened, p *byte, n int)

var hasPutLong = cpu.X86.HasAVX2 && cpu.X86.HasPOPCNT
