package encode

import (
	"sync/atomic"

	"github.com/rollway/rollway/internal/goid"
)

// A value whose LogValue or Error logs that same value would go on until the
// stack is full, which ends the process. So calls of these methods under way
// are counted, by goroutine; where goroutines share a count it takes that many
// of them inside at one time to be mistaken for one.
const (
	maxNesting = 10_000
	logsItself = "!ERROR: the value logs itself"
)

var nesting [64]struct {
	n atomic.Int32
	_ [60]byte
}

// enterValue returns the count to which leaveValue is to be called when the
// method of a value has returned, or nil if it must not be called.
func enterValue() *atomic.Int32 {
	n := &nesting[goid.Hash(uint32(len(nesting)))].n
	if n.Add(1) <= maxNesting {
		return n
	}
	n.Add(-1)
	return nil
}

func leaveValue(n *atomic.Int32) { n.Add(-1) }
