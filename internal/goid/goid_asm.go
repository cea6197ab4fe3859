//go:build amd64 || arm64

package goid

// Stable reports whether Hash tells goroutines apart.
const Stable = true

// current returns the address of the runtime's record of the calling goroutine.
func current() uintptr
