package httpfast

import "time"

const (
	stuckAfter = 10 * time.Millisecond // without anybody who takes a connection
	maxAtOnce  = 256                   // workers
	maxWorkers = 1024                  // in handlers that wait without having said it
)

// startWatch has watch look after the workers.
func (s *Server) startWatch() {
	if s.watching.CompareAndSwap(false, true) {
		select {
		case s.alarm <- struct{}{}:
		default:
		}
	}
}

// watch starts more workers while all of them are in handlers that do not come
// back, and sleeps while there is nothing to do.
func (s *Server) watch() {
	tick := time.NewTicker(stuckAfter)
	defer tick.Stop()
	for {
		tick.Stop()
		select {
		case <-s.alarm:
		case <-s.stopped:
			return
		}
		tick.Reset(stuckAfter)
		for last, count, started := s.taken.Load(), 1, 0; s.watching.Load(); {
			select {
			case <-tick.C:
			case <-s.stopped:
				return
			}
			now := s.taken.Load()
			switch taken := now - last; {
			case s.waiting.Load() == 0 && taken <= uint64(started): // each new one is stuck as well
				s.startMore(count)
				last, started, count = now, count, min(2*count, maxAtOnce)
			case taken > 0:
				last, started, count = now, 0, 1
			default:
				s.watching.Store(false)
				if s.waiting.Load() == 0 { // taken since, perhaps without an alarm
					s.startWatch()
				}
			}
		}
	}
}

func (s *Server) startMore(count int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ; count > 0 && !s.ended && s.active < maxWorkers; count-- {
		s.startLocked()
	}
}

// sweep looks for connections that have waited too long.
func (s *Server) sweep() {
	tick := time.NewTicker(s.o.sweepEvery())
	defer tick.Stop()
	w := s.newWorker()
	var list []*conn // again, as it is long and made often
	for {
		select {
		case <-tick.C:
		case <-s.stopped:
			return
		}
		now := s.after(0)
		clear(list) // those that are gone need not be kept
		list = s.conns.appendAll(list[:0])
		for _, c := range list {
			if c.deadline.Load() < now && c.own() {
				w.expire(c, now)
			}
		}
	}
}

// expire does what is to be done at the deadline of c, which w owns.
func (w *worker) expire(c *conn, now int64) {
	s := w.s
	switch {
	case c.deadline.Load() >= now || s.closing.Load(): // what is left then is for Shutdown
		if !c.release() {
			w.attend(c, true)
		}
	case len(c.part) > 0 && len(c.pending) == 0:
		s.handOver(c, w.resume(c))
	default:
		w.resume(c)
		s.close(c)
	}
}
