// Package ntcopy copies memory to where nobody will read it soon: by stores that
// pass the caches by (non-temporal), where the processor has them. The target's
// lines are then not fetched only to be written over whole, and what the caches
// hold stays there.
package ntcopy

// least is the length in bytes from which Copy passes the caches by: below it
// waiting for the stores to arrive takes what is saved. See BenchmarkCopy.
const least = 8 << 10

// Copy is the builtin copy of as many bytes as the shorter one of dst and src
// has, and returns how many these are. They must not overlap. Whoever learns of
// the copy by a synchronizing operation after it sees its bytes.
func Copy(dst, src []byte) int {
	if !hasStream || len(src) < least || len(dst) < least {
		return copy(dst, src)
	}
	return past(dst, src)
}

func past(dst, src []byte) int {
	n := min(len(dst), len(src))
	head := -address(dst) & (line - 1)
	body := (n - head) &^ (line - 1)
	copy(dst[:head], src)
	stream(&dst[head], &src[head], body)
	copy(dst[head+body:n], src[head+body:])
	return n
}

// line is the size in bytes of a line of the cache, which is what is stored at
// a time.
const line = 64
