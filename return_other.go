//go:build !amd64 && !arm64

package rollway

// returnAddress returns 0: the address is not available.
func returnAddress() uintptr { return 0 }
