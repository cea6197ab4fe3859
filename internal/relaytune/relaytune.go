// Package relaytune changes how package relay copies bytes. Only benchmarks, and flags for
// operators, change its zero values.
package relaytune

// These are read by relay.New.
var (
	// NoSplice copies through buffers everywhere.
	NoSplice bool

	// BufferSize is the size of a buffer: 4, 8, 16 or 64 KiB. By default, 0, it is
	// 64 KiB, and 16 KiB for those beyond 128 in use at a time.
	BufferSize int
)
