// Package goid gives a number that stays the same for a goroutine as long as
// it runs, and that others have at other times only: the address of the
// runtime's record of it. Go has no name for goroutines on purpose; this is no
// more than a way to spread them.
package goid

// Hash returns a value in [0, n) that depends on the goroutine alone, or 0
// where a goroutine cannot be told. n is positive.
func Hash(n uint32) uint32 {
	if n == 1 {
		return 0
	}
	// Multiplicative hashing (Knuth, The Art of Computer Programming, vol. 3,
	// section 6.4): records are some hundred bytes apart, and their addresses'
	// low bits are alike.
	h := uint64(current()) * 0x9E3779B97F4A7C15
	return uint32(h >> 32 * uint64(n) >> 32)
}
