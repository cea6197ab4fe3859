//go:build !unix || race || aix || solaris

package direct

import "unsafe"

func allocate(n int) ([]byte, error) { return onHeap(n), nil }

func release([]byte) error { return nil }

// onHeap returns n aligned bytes of the heap.
func onHeap(n int) []byte {
	b := make([]byte, n+Align)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & (Align - 1))
	return b[skip : skip+n : skip+n]
}
