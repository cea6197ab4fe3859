// Package ntcopy copies lines to memory that is not read soon, and counts them in the
// same pass. It copies long ones by non-temporal stores, where the processor has them:
// these bypass the caches, so that the target's cache lines are not fetched only to be
// overwritten, and the contents of the caches stay.
package ntcopy

import "bytes"

// least is the shortest length in bytes for which Lines bypasses the caches: below it,
// waiting for the stores costs what they save. See BenchmarkLines.
const least = 8 << 10

// Lines copies src to the beginning of dst, which is no shorter, and returns
// the number of newlines. They must not overlap. A goroutine that synchronizes with the
// caller after Lines sees the bytes.
func Lines(dst, src []byte) (newlines int) {
	switch n := len(src); {
	case !hasVectors || n < vector:
		return plain(dst, src)
	case n < least:
		return lines(&dst[0], &src[0], n)
	default:
		head := -address(dst) & (line - 1)
		body := (n - head) &^ (line - 1)
		newlines = plain(dst[:head], src[:head])
		newlines += stream(&dst[head], &src[head], body)
		return newlines + plain(dst[head+body:], src[head+body:])
	}
}

func plain(dst, src []byte) (newlines int) {
	copy(dst, src)
	return bytes.Count(src, newline)
}

var newline = []byte{'\n'}

const (
	vector = 32 // bytes copied at a time
	line   = 64 // bytes of a cache line
)
