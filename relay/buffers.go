package relay

import (
	"sync"
	"sync/atomic"
)

type buffer struct{ b []byte }

// buffers lends buffers of one size, and of a smaller one beyond a number in
// use. The garbage collector frees those that are not used. It is safe for concurrent use.
type buffers struct {
	large, small sync.Pool
	inUse        atomic.Int64
	sizeBytes    int   // of large ones
	many         int64 // in use at a time, beyond which they are small
}

// Sizes of buffers, unless Options.bufferSize names one.
const (
	largeBuffer     = 64 << 10
	smallBuffer     = 16 << 10
	maxLargeBuffers = 128 // in use at a time
)

// init sets the size; 0: by how many are in use.
func (p *buffers) init(sizeBytes int) {
	small := sizeBytes
	if sizeBytes == 0 {
		sizeBytes, small = largeBuffer, smallBuffer
	}
	p.sizeBytes, p.many = sizeBytes, maxLargeBuffers
	p.large.New = func() any { return &buffer{make([]byte, sizeBytes)} }
	p.small.New = func() any { return &buffer{make([]byte, small)} }
}

func (p *buffers) get() *buffer {
	if p.inUse.Add(1) > p.many {
		return p.small.Get().(*buffer)
	}
	return p.large.Get().(*buffer)
}

// getLarge returns a large buffer. The caller puts it back before it waits.
func (p *buffers) getLarge() *buffer {
	p.inUse.Add(1)
	return p.large.Get().(*buffer)
}

func (p *buffers) put(b *buffer) {
	p.inUse.Add(-1)
	if len(b.b) < p.sizeBytes {
		p.small.Put(b)
	} else {
		p.large.Put(b)
	}
}
