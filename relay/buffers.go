package relay

import (
	"sync"
	"sync/atomic"
)

type buffer struct{ b []byte }

// buffers lends large buffers, and small ones beyond a number in use. It is safe for
// concurrent use.
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

// A budget bounds, roughly, the bytes that the system buffers for directions that wait
// for their destination. While less than half of it is used, a direction that begins to
// wait keeps its buffers. Later ones, and new connections, are limited to a part of the
// rest. If more than fewConns are open, the send buffers of new ones are always limited,
// as many may begin to wait before the first are counted. It is safe for concurrent use.
type budget struct {
	size int64        // ≤ 0: no bound
	held atomic.Int64 // bytes granted to directions that wait

	waiting atomic.Int64 // directions that wait
	conns   atomic.Int64 // open connections
}

const (
	fullShare = 4 << 20 // the share of a direction that is not limited: the system tunes its buffers
	minShare  = 128 << 10
	sharePart = 16 // a limited direction gets 1/16 of the rest and counts at most as 1/16 of the whole
	fewConns  = 8  // open connections up to which the system tunes their send buffers
)

// share is how many bytes the next direction may have: fullShare while less than
// half of the budget is taken, or if there is no bound.
func (b *budget) share() int64 {
	held := b.held.Load()
	if held < b.size/2 || b.size <= 0 {
		return fullShare
	}
	return max(min((b.size-held)/sharePart, fullShare-1), minShare)
}

// wait is the state of a direction that may wait for its destination.
type wait struct {
	on      atomic.Bool  // the destination accepts nothing now
	granted atomic.Int64 // bytes of the budget, while on
	limited atomic.Int64 // what the source's receive buffer is limited to; 0: it is not
	stall   stallState   // owned by Relay.enforceTimeouts
}

// limit limits the buffers of a new direction if the budget asks for that.
func (p *pump) limit() {
	b := &p.conn.relay.budget
	if share := b.share(); share < fullShare {
		p.limitTo(share)
	} else if b.size > 0 && b.conns.Load() > fewConns {
		p.dst.limitUnsent(maxUnsent)
	}
}

// limitTo limits the source's receive buffer to share, and the destination's send
// buffer, unless they are limited to as little already.
func (p *pump) limitTo(share int64) {
	w := &p.wait
	if limited := w.limited.Load(); limited != 0 && limited <= share {
		return
	}
	w.limited.Store(share)
	p.src.setReceiveBuffer(int(share), true)
	p.dst.limitUnsent(maxUnsent)
}

// block records that dst accepts nothing now. It may be called again before unblock.
func (p *pump) block() {
	w := &p.wait
	if !w.on.CompareAndSwap(false, true) {
		return
	}
	b := &p.conn.relay.budget
	share := b.share()
	granted := min(share, max(b.size/sharePart, minShare))
	w.granted.Store(granted)
	b.held.Add(granted)
	b.waiting.Add(1)
	if share < fullShare {
		p.limitTo(share)
	}
}

// unblock records that dst has accepted all bytes, or has failed. It is called after
// each write, even if block was not, and lifts the direction's limit once less than half
// of the budget is used.
func (p *pump) unblock() {
	w, b := &p.wait, &p.conn.relay.budget
	if w.on.CompareAndSwap(true, false) {
		b.held.Add(-w.granted.Load())
		b.waiting.Add(-1)
	}
	if w.limited.Load() != 0 && b.share() == fullShare {
		w.limited.Store(0)
		p.src.setReceiveBuffer(fullShare, false)
		if b.conns.Load() <= fewConns {
			p.dst.limitUnsent(0)
		}
	}
}

// maxUnsent is how many bytes the system takes for a peer beyond those that it has
// sent, while the direction is limited. This makes a bulk transfer cost up to a
// quarter more CPU.
const maxUnsent = 128 << 10
