package slabfile

import "unsafe"

// alignedBytes returns n bytes that begin where a page of the file would, so
// that descriptors have their own cache lines and words their alignment.
func alignedBytes(n int) []byte {
	b := make([]byte, n+alignment)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(b))) & (alignment - 1)
	return b[skip : int(skip)+n : int(skip)+n]
}
