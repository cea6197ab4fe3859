package admission

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A poller has Go's scheduler look which connections can be read from. By itself it looks every
// 10 ms only while goroutines can run, as the queues of those come first. Beside work
// that takes all processors, a request would wait that long, however short the slices are.
//
// Who waits to read from a pipe that it has written to goes on once the scheduler has looked. This
// takes some 4 µs, and more if a thread sleeps meanwhile. So it is done only while there are
// requests.
type poller struct {
	asked   atomic.Int64 // turns that were not low, since counted
	counted atomic.Int64 // when that was looked at, as a time since epoch
	active  atomic.Bool  // there were some
	looked  atomic.Int64 // when the scheduler has looked last, as a time since epoch

	mu   sync.Mutex
	r, w *os.File        // guarded by mu; nil: not opened yet
	wait syscall.RawConn // guarded by mu; of r
	err  error           // guarded by mu; why there is no pipe that can be waited for
}

// epoch is when the program began.
var epoch = time.Now()

// few is how many turns a second do not count as requests: a query is a request, too.
const few = 10

// wanted reports whether there are requests.
func (p *poller) wanted(now time.Time) bool {
	at, last := int64(now.Sub(epoch)), p.counted.Load()
	if at-last >= int64(time.Second) && p.counted.CompareAndSwap(last, at) {
		p.active.Store(p.asked.Swap(0) > few)
	}
	return p.active.Load()
}

// look lets the goroutines run that can, and those whose connections can be read from. It does
// nothing and returns false if there are no requests, or if the scheduler has looked within a slice.
func (p *poller) look(now time.Time) bool {
	since := now.Sub(epoch) - time.Duration(p.looked.Load())
	switch {
	case !p.wanted(now):
		return false
	case since < slice:
		return false
	case p.mu.TryLock():
	case since < 2*slice: // another looks
		return false
	default: // if it has to wait for goroutines such as this, this must not be in their way
		p.mu.Lock()
	}
	defer p.mu.Unlock()
	if p.err == nil {
		p.looked.Store(int64(time.Since(epoch)))
		p.err = p.lookLocked()
	}
	return p.err == nil
}

func (p *poller) lookLocked() (err error) {
	if p.r == nil {
		if p.r, p.w, err = os.Pipe(); err != nil {
			return err
		}
		if p.wait, err = p.r.SyscallConn(); err != nil {
			return err
		}
	}
	var b [1]byte
	var failed error
	written := false
	err = p.wait.Read(func(uintptr) (done bool) {
		if !written {
			_, failed = p.w.Write(b[:])
			written = true
			return failed != nil
		}
		return true
	})
	if err != nil || failed != nil {
		return errors.Join(err, failed)
	}
	_, err = p.r.Read(b[:])
	return err
}
