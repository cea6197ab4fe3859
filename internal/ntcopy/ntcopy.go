// Package ntcopy copies lines to where nobody will read them soon, and counts
// them in the same pass. Long ones it copies by stores that pass the caches by
// (non-temporal), where the processor has them: the target's cache lines are
// then not fetched only to be written over whole, and what the caches hold
// stays there.
package ntcopy

import "bytes"

// least is the length in bytes from which Lines passes the caches by: below it
// waiting for the stores to arrive takes what is saved. See BenchmarkLines.
const least = 8 << 10

// Lines copies src to the beginning of dst, which is no shorter, and returns
// the number of newlines. They must not overlap. Whoever learns of the copy by
// a synchronizing operation after it sees its bytes.
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
	vector = 32 // bytes that are copied at a time
	line   = 64 // bytes of a line of the cache, which is what is stored past it
)
