package pool

import (
	"runtime/debug"
	"testing"
)

// scratch is a value with one piece of memory.
type scratch struct{ b []byte }

func (s *scratch) Memory() Memory { return Memory{s.b} }

func newPool(size int) *Pool[*scratch] {
	return &Pool[*scratch]{New: func() *scratch { return &scratch{make([]byte, 0, size)} }}
}

// A value is given again, one that is too large is not.
func TestReuse(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // which empties pools
	for _, tt := range []struct {
		size  int
		again bool
	}{{100, true}, {MaxKept, true}, {MaxKept + 1, false}} {
		p := newPool(tt.size)
		seen := map[*scratch]bool{}
		again := false
		for range 100 {
			v := p.Get()
			again = again || seen[v]
			seen[v] = true
			p.Put(v)
		}
		if again != tt.again {
			t.Errorf("values of %d bytes are given again: %v, want %v", tt.size, again, tt.again)
		}
	}
}
