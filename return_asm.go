//go:build amd64 || arm64

package rollway

// returnAddress returns the address to which the function that calls it will
// return. That function must have a frame of its own and not be inlined.
func returnAddress() uintptr
