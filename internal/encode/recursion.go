package encode

import (
	"sync/atomic"

	"github.com/rollway/rollway/internal/goid"
)

// A value whose LogValue or Error logs the same value would recurse until the stack
// is full, which ends the process. So calls of these methods in progress are counted
// by goroutine. Goroutines may share a count; maxNesting of them must be inside at
// once to be mistaken for one that recurses.
const (
	maxNesting = 10_000
	logsItself = "!ERROR: the value logs itself"
)

var nesting [64]struct {
	n atomic.Int32
	_ [60]byte
}

// enterValue returns the count for leaveValue, to be called when the method of a
// value has returned, or nil if the method must not be called.
func enterValue() *atomic.Int32 {
	n := &nesting[goid.Hash(uint32(len(nesting)))].n
	if n.Add(1) <= maxNesting {
		return n
	}
	n.Add(-1)
	return nil
}

func leaveValue(n *atomic.Int32) { n.Add(-1) }
