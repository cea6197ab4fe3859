package direct

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollway/rollway/internal/direct"
	"github.com/rollway/rollway/internal/goid"
)

// casLogger is the published logger and the two steps before it. Each of its
// domains is a pair of buffer sets that are swapped as a whole: the published
// design has one domain of many shards, "sharded CAS" many domains of one
// shard, "CAS" one of one. What the text says is done as it says:
//
//   - a place is reserved by a CAS on the shard's offset, and the bytes are
//     copied afterwards; the flush takes data up to the offset and does not
//     know whether they have been;
//   - a swap goes to the other set whether or not it has been flushed;
//   - a set is handed over through a channel of one item, and if that is full
//     the request is not made;
//   - a record that does not fit is refused after the swap that it caused.
type casLogger struct {
	domains []casDomain
	shards  int // of a domain
	request chan flushRequest
	stop    chan struct{}
	stopped chan struct{}
	flush   time.Duration
	out     Output
	memory  int   // bytes of all sets
	err     error // the first of out; read after stopped is closed
}

type casDomain struct {
	active atomic.Pointer[casSet]
	a, b   *casSet
	_      [104]byte // domains do not share cache lines
}

type casSet []casShard

type casShard struct {
	data   []byte
	offset atomic.Int32
	mu     sync.Mutex // of flushes alone
	memory *direct.MemorySet
	_      [64]byte
}

type flushRequest struct{ set casSet }

func openCAS(layout func(Config) (domains, shards int)) func(Config) (Logger, error) {
	return func(c Config) (Logger, error) {
		domains, shards := layout(c)
		l, err := newCAS(c, domains, shards)
		if err != nil {
			return nil, err
		}
		go l.run()
		return l, nil
	}
}

// newCAS makes a casLogger without its worker.
func newCAS(c Config, domains, shards int) (*casLogger, error) {
	out, err := openOutput(c)
	if err != nil {
		return nil, err
	}
	l := &casLogger{
		domains: make([]casDomain, domains), shards: shards, flush: c.Flush, out: out,
		request: make(chan flushRequest, domains), stop: make(chan struct{}), stopped: make(chan struct{}),
		memory: 2 * c.BufferSize,
	}
	for i := range l.domains {
		d := &l.domains[i]
		for _, set := range []**casSet{&d.a, &d.b} {
			if *set, err = newCASSet(shards, c.BufferSize/(domains*shards)); err != nil {
				return nil, err
			}
		}
		d.active.Store(d.a)
	}
	return l, nil
}

func newCASSet(shards, size int) (*casSet, error) {
	set := make(casSet, shards)
	for i := range set {
		memory, err := direct.NewMemorySet(1, size)
		if err != nil {
			return nil, err
		}
		set[i].memory, set[i].data = memory, memory.Bytes(0)
	}
	return &set, nil
}

func (l *casLogger) LogBytes(p []byte) error {
	id := int(goid.Hash(uint32(len(l.domains) * l.shards)))
	d := &l.domains[id/l.shards]
	n := int32(len(p)) + 1
	for {
		set := d.active.Load()
		s := &(*set)[id%l.shards]
		offset := s.offset.Load()
		end := offset + n
		if int(end) > len(s.data) {
			l.swap(d)
			return ErrFull
		}
		if !s.offset.CompareAndSwap(offset, end) {
			continue
		}
		copy(s.data[offset:end-1], p)
		s.data[end-1] = '\n'
		if int(end) >= len(s.data)/10*9 {
			l.swap(d)
		}
		return nil
	}
}

// swap makes the other set of d the active one and asks for a flush.
func (l *casLogger) swap(d *casDomain) {
	old, next := d.active.Load(), d.a
	if old == next {
		next = d.b
	}
	if d.active.CompareAndSwap(old, next) {
		select {
		case l.request <- flushRequest{*old}:
		default:
		}
	}
}

func (l *casLogger) run() {
	defer close(l.stopped)
	tick := time.NewTicker(l.flush)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			for i := range l.domains {
				l.swap(&l.domains[i])
			}
		case r := <-l.request:
			l.write(r.set)
		case <-l.stop:
			return
		}
	}
}

func (l *casLogger) write(set casSet) {
	var bufs [][]byte
	for i := range set {
		s := &set[i]
		s.mu.Lock()
		if n := s.offset.Load(); n > 0 {
			bufs = append(bufs, s.data[:n])
		}
		s.mu.Unlock()
	}
	if len(bufs) > 0 {
		if err := l.out.WriteSet(bufs); err != nil && l.err == nil {
			l.err = err
		}
	}
	for i := range set {
		s := &set[i]
		s.mu.Lock()
		s.offset.Store(0)
		s.mu.Unlock()
	}
}

// Close writes the sets that were handed over and then the active ones. The
// text's own Close waits for a signal that its worker gives at the start.
func (l *casLogger) Close() error {
	close(l.stop)
	<-l.stopped
	for len(l.request) > 0 {
		l.write((<-l.request).set)
	}
	for i := range l.domains {
		l.write(*l.domains[i].active.Load())
	}
	err := l.out.Close()
	for i := range l.domains {
		for _, set := range []*casSet{l.domains[i].a, l.domains[i].b} {
			for j := range *set {
				if e := (*set)[j].memory.Free(); err == nil {
					err = e
				}
			}
		}
	}
	if l.err != nil {
		return l.err
	}
	return err
}

func (l *casLogger) Figures() Figures {
	f := l.out.Figures()
	f.Memory += l.memory
	return f
}
