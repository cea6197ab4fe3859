package relay

import (
	"sync"
	"sync/atomic"
)

// A buffer holds bytes on their way from one side to the other.
type buffer struct{ b []byte }

// buffers lends buffers of one size. What nobody uses the garbage collector
// takes away. Safe for concurrent use.
type buffers struct {
	pool  sync.Pool
	inUse atomic.Int64
}

func (p *buffers) init(sizeBytes int) {
	p.pool.New = func() any { return &buffer{make([]byte, sizeBytes)} }
}

func (p *buffers) get() *buffer {
	p.inUse.Add(1)
	return p.pool.Get().(*buffer)
}

func (p *buffers) put(b *buffer) {
	p.inUse.Add(-1)
	p.pool.Put(b)
}
