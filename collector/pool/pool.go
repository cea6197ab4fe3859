// Package pool is sync.Pool for values that keep memory between uses, with a
// check that nothing outlives its use.
//
// Under the build tag rollway_poison, and under the race detector, all memory of a
// returned value is overwritten by 0xDB, which is no text, and the value waits in a
// quarantine. When it leaves, Get panics if the memory was written to meanwhile, and says
// where the value was returned. A value that is returned twice panics at once.
package pool

// Memory is what a value keeps between uses; unused places are nil.
type Memory [19][]byte

// A Value is what can be in a Pool: a pointer.
type Value interface {
	comparable
	// Memory returns all bytes that the value keeps.
	Memory() Memory
}

// MaxKept is how large one piece of memory may be; a value with a larger one is
// not kept.
const MaxKept = 1 << 20

// Kept reports whether a Pool keeps a value with the memory m.
func Kept(m *Memory) bool {
	for _, b := range m {
		if cap(b) > MaxKept {
			return false
		}
	}
	return true
}
