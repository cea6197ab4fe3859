package slabfile

import (
	"runtime/debug"
	"unsafe"
)

// Something else may cut the file while it is mapped. Its pages are gone then,
// and to touch one raises SIGBUS, which ends the process unless the goroutine
// has asked for a panic instead. So everything that touches mapped memory does
// that under guard, or as package slab's hot path with Covers.

// guard calls touch, which uses f.mem, and reports whether the pages were there.
func (f *File) guard(touch func()) (ok bool) {
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		if !ok {
			if v := recover(); !f.Covers(v) {
				panic(v)
			}
		}
	}()
	touch()
	return true
}

// Covers reports whether v, which a goroutine with debug.SetPanicOnFault has
// panicked with, says that a page of the file is gone.
func (f *File) Covers(v any) bool {
	fault, ok := v.(interface{ Addr() uintptr })
	return ok && fault.Addr()-uintptr(unsafe.Pointer(unsafe.SliceData(f.mem))) < uintptr(len(f.mem))
}
