//go:build !rollway_poison && !race

package pool

import "sync"

// Poisons tells whether this build looks for use after return.
const Poisons = false

// A Pool holds values that are not in use. It is safe for concurrent use.
type Pool[T Value] struct {
	New  func() T // required
	pool sync.Pool
}

// Get returns a value that was returned before, or a new one.
func (p *Pool[T]) Get() T {
	if v, ok := p.pool.Get().(T); ok {
		return v
	}
	return p.New()
}

// Put returns a value, which the caller must not use any more.
func (p *Pool[T]) Put(v T) {
	if m := v.Memory(); Kept(&m) {
		p.pool.Put(v)
	}
}

// KeepNothing does something under the build tag only.
func KeepNothing(bool) {}

// Faults is 0.
func Faults() int { return 0 }

// Overwrite overwrites b under the build tag: for memory that is used again
// without a Pool.
func Overwrite([]byte) {}

// CheckText panics under the build tag if text holds overwritten memory or is
// otherwise not UTF-8.
func CheckText([]byte) {}

// CheckBytes panics under the build tag if b holds overwritten memory.
func CheckBytes([]byte) {}
