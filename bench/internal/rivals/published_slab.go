package rivals

import (
	"io"
	"sync"
	"time"
)

// publishedSlab is the design that "Buffering Strategies" describes, written
// anew from its text: a mutex and a copy into the current slab, full slabs
// through a channel to one goroutine, free ones back through another, and a
// timer for the partial slab while the goroutine is idle. It keeps no counts, as
// the text promises none; Close returns the first error.
type publishedSlab struct {
	dst   io.Writer
	flush time.Duration

	mu  sync.Mutex
	cur []byte // guarded by mu; len is what is filled

	free, full chan []byte
	done       chan struct{}
	err        error // the first of dst; read-only after done is closed
}

// newPublishedSlab starts one with count slabs of size bytes each.
func newPublishedSlab(dst io.Writer, size, count int, flush time.Duration) *publishedSlab {
	w := &publishedSlab{
		dst: dst, flush: flush, cur: make([]byte, 0, size),
		free: make(chan []byte, count), full: make(chan []byte, count), done: make(chan struct{}),
	}
	for range count - 1 {
		w.free <- make([]byte, 0, size)
	}
	go w.run()
	return w
}

func (w *publishedSlab) Write(p []byte) (int, error) {
	w.mu.Lock()
	if len(p) > cap(w.cur)-len(w.cur) {
		w.full <- w.cur
		w.cur = <-w.free
	}
	w.cur = append(w.cur, p...)
	w.mu.Unlock()
	return len(p), nil
}

func (w *publishedSlab) Close() error {
	w.mu.Lock()
	w.full <- w.cur
	close(w.full)
	w.mu.Unlock()
	<-w.done
	return w.err
}

func (w *publishedSlab) run() {
	defer close(w.done)
	idle := time.NewTimer(w.flush)
	for {
		select {
		case s, ok := <-w.full:
			if !ok {
				return
			}
			w.write(s)
		default:
			idle.Reset(w.flush)
			select {
			case s, ok := <-w.full:
				if !ok {
					return
				}
				w.write(s)
			case <-idle.C:
				w.sealIdle()
			}
		}
	}
}

// sealIdle queues the partial slab if there is a free one to follow it.
func (w *publishedSlab) sealIdle() {
	if !w.mu.TryLock() {
		return
	}
	defer w.mu.Unlock()
	if len(w.cur) == 0 || len(w.full) > 0 {
		return
	}
	select {
	case next := <-w.free:
		w.full <- w.cur
		w.cur = next
	default:
	}
}

func (w *publishedSlab) write(s []byte) {
	if len(s) > 0 {
		if _, err := w.dst.Write(s); err != nil && w.err == nil {
			w.err = err
		}
	}
	w.free <- s[:0]
}
