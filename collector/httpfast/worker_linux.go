package httpfast

import (
	"net/http"
	"runtime"
	"time"

	"github.com/rollway/rollway/collector/pool"
	"golang.org/x/sys/unix"
)

// A worker is a goroutine that answers requests, and its memory.
type worker struct {
	s       *Server
	buf     []byte // what is read
	answer  answer
	events  [1]unix.EpollEvent // more would wait for the first one's handler
	blocked bool               // the handler has said WillBlock
	turns   int                // how often the connection was read from without a break
	resumed *byte              // where the memory of conn.part begins, if that is worked on
}

func (s *Server) newWorker() *worker { return &worker{s: s, buf: make([]byte, maxRequest)} }

// startLocked starts one more worker.
func (s *Server) startLocked() {
	var w *worker
	if n := len(s.spare); n > 0 {
		w, s.spare = s.spare[n-1], s.spare[:n-1]
	} else {
		w = s.newWorker()
	}
	s.active++
	s.surplus.Store(int32(s.active - s.limit))
	s.running.Go(w.work)
}

// work waits for connections and attends to them, until the Server stops or
// there are workers enough without it.
func (w *worker) work() {
	s := w.s
	for {
		s.waiting.Add(1)
		n, _ := unix.EpollWait(s.epoll, w.events[:], -1)
		s.waiting.Add(-1)
		if n > 0 {
			fd := w.events[0].Fd
			if int(fd) == s.wake {
				return
			}
			s.taken.Add(1)
			if !s.watching.Load() {
				s.startWatch()
			}
			if c := s.conns.at(fd); c != nil && c.ownOrTell() {
				const ends = unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR
				w.attend(c, w.events[0].Events&ends != 0)
			}
		}
		if s.surplus.Load() > 0 && s.waiting.Load() > 0 && w.leave() {
			return
		}
	}
}

// leave ends the worker if there are too many.
func (w *worker) leave() bool {
	s := w.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active <= s.limit {
		return false
	}
	s.active--
	s.surplus.Store(int32(s.active - s.limit))
	if len(s.spare) < maxSpare {
		s.spare = append(s.spare, w)
	}
	return true
}

// maxBlocked is how many workers may wait in handlers, each with its memory.
const maxBlocked = 256

// crowded reports whether as many do, those among them that have not said so.
func (s *Server) crowded() bool { return s.blocked.Load()+max(0, s.surplus.Load()) >= maxBlocked }

// maxSpare is how many workers keep their memory without a goroutine.
const maxSpare = 64

// willBlock implements blocker.
func (w *worker) willBlock() {
	if w.blocked {
		return
	}
	w.blocked = true
	s := w.s
	s.blocked.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active--
	s.surplus.Store(int32(s.active - s.limit))
	if s.active < s.limit && !s.ended {
		s.startLocked()
	}
}

// unblock takes willBlock back.
func (w *worker) unblock() {
	w.blocked = false
	s := w.s
	s.blocked.Add(-1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active++
	s.surplus.Store(int32(s.active - s.limit))
}

// maxTurns is how often in a row a connection is read from that always has more.
const maxTurns = 64

// attend does all there is to do for c, which w owns, and gives it up. ended: to
// read less than there was room for does not mean that there is no more.
func (w *worker) attend(c *conn, ended bool) {
	for w.turns = 0; ; ended = true {
		w.serve(c, ended)
		switch {
		case c.state.Load() == gone:
			return
		case w.turns >= maxTurns: // it would keep the worker from all others
			w.s.tellAgain(c)
			return
		case c.release():
			return
		}
	}
}

// A verdict says how to go on with a connection.
type verdict int

const (
	more    verdict = iota // read
	foreign                // hand over
	full                   // wait until the client takes its answer
	over                   // it is closed
)

// serve reads from c, and answers, until there is no more to read.
func (w *worker) serve(c *conn, ended bool) {
	s := w.s
	if len(c.pending) > 0 && w.flush(c) != more {
		return
	}
	in := w.resume(c)
	for drained := false; ; w.turns++ {
		rest, want, v := w.requests(c, in)
		switch {
		case v == over:
			return
		case v == foreign:
			s.handOver(c, rest)
			return
		case v == full:
			if len(rest) > 0 && !s.keep(c, rest, len(rest)) {
				s.close(c)
			}
			return
		case drained || w.turns >= maxTurns:
			w.park(c, rest, want)
			return
		case len(rest) == 0:
			in = w.buf[:0]
		case &rest[0] != &in[0] || cap(in) < want:
			in = w.buf[:copy(w.buf, rest)]
		}
		n, err := read(c.fd, in[len(in):cap(in)])
		switch {
		case n > 0:
			drained = !ended && n < cap(in)-len(in)
			in = in[:len(in)+n]
		case err == unix.EAGAIN:
			drained = true
		case len(in) > 0 && !c.between(in): // net/http knows what to do about a request that breaks off
			s.handOver(c, in)
			return
		default:
			s.close(c)
			return
		}
	}
}

// resume takes what was kept of c.
func (w *worker) resume(c *conn) []byte {
	in := c.part
	w.s.kept.Add(-int64(cap(in)))
	c.part, w.resumed = nil, nil
	if len(in) < aheadOf {
		return w.buf[:copy(w.buf, in)]
	}
	w.resumed = &in[0]
	return in
}

// park leaves c to wait for the rest of a request of want bytes, of which part
// is here, or, if part is empty, for the next one.
func (w *worker) park(c *conn, part []byte, want int) {
	s := w.s
	switch {
	case s.closing.Load() && (len(part) == 0 || c.between(part)):
		s.close(c)
	case len(part) > 0 && &part[0] == w.resumed && cap(part) == want: // as before, its deadline too
		s.kept.Add(int64(want))
		c.part = part
	case len(part) > 0 && s.keep(c, part, want):
		c.deadline.Store(s.after(s.o.patience()))
	case len(part) > 0:
		s.handOver(c, part)
	}
}

// requests answers the requests that in begins with, and returns the rest. If
// that is the beginning of one, want is the size of the whole.
func (w *worker) requests(c *conn, in []byte) (rest []byte, want int, v verdict) {
	for {
		for c.posted && c.skipped < aheadOf && len(in) > 0 && (in[0] == '\r' || in[0] == '\n') {
			in = in[1:] // net/http passes by as many after a POST
			c.skipped++
		}
		switch {
		case len(in) == 0:
			return nil, 0, more
		case c.between(in):
			return in, len(in) + 1, more
		}
		head, length, ok := w.parse(c, in)
		if !ok {
			return in, 0, foreign
		}
		size := head + length
		if size > len(in) {
			return in, size, more
		}
		if w.s.crowded() && !w.s.closing.Load() { // net/http may keep more of them, under the handler's own bounds
			return in, 0, foreign
		}
		v := w.handle(c, in[head:size:size], length)
		in = in[size:]
		if v != more {
			return in, 0, v
		}
	}
}

// parse finds the size of the header block that in begins with, and of its body,
// and makes c.head that block. ok is false if net/http is to take it.
func (w *worker) parse(c *conn, in []byte) (size, length int, ok bool) {
	if c.head != nil {
		if size, length, ok = c.head.same(in); ok {
			return size, length, size+length <= maxRequest
		}
	}
	h := parseHead(in)
	if h == nil || len(h.text)+h.length > maxRequest {
		return 0, 0, false
	}
	h.req.RemoteAddr = c.remote
	h.req = *h.req.WithContext(&c.ctx)
	asked := h.req
	asked.Body = http.NoBody
	if !w.s.o.Takes(&asked) {
		return 0, 0, false
	}
	h.handler = w.s.o.route(&asked)
	c.head = h
	return len(h.text), h.length, true
}

// handle has the handler answer the request c.head with its body.
func (w *worker) handle(c *conn, b []byte, length int) verdict {
	s := w.s
	c.head.request(&c.req, length)
	c.body = body{rest: b}
	c.req.Body = &c.body
	w.answer.reset()
	whole := w.call(c)
	c.body = body{closed: true}
	pool.Overwrite(b) // for who has kept it
	if w.blocked {
		w.unblock()
	}
	c.answered, c.posted, c.skipped, c.back = true, true, 0, false
	s.counts.requests.Add(1)
	if !whole {
		s.close(c)
		return over
	}
	w.answer.close = w.answer.close || s.leaving.Load()
	now := time.Now()
	out := w.answer.finish(s.dates.at(now))
	c.last = w.answer.close
	n, err := write(c.fd, out)
	defer pool.Overwrite(out)
	switch {
	case n < len(out) && (err == nil || err == unix.EAGAIN):
		c.pending = append([]byte(nil), out[n:]...)
		c.deadline.Store(int64(now.Sub(s.began) + s.o.WriteTimeout))
		return full
	case err != nil || c.last:
		s.close(c)
		return over
	}
	c.deadline.Store(int64(now.Sub(s.began) + s.o.IdleTimeout))
	return more
}

// call calls the handler; false: it has panicked, and there is no answer.
func (w *worker) call(c *conn) (whole bool) {
	c.ctx.now = w
	defer func() {
		c.ctx.now = nil
		if p := recover(); p != nil && p != http.ErrAbortHandler {
			stack := make([]byte, 64<<10)
			w.s.o.logf("httpfast: panic serving %s: %v\n%s", c.remote, p, stack[:runtime.Stack(stack, false)])
		}
	}()
	c.head.handler.ServeHTTP(&w.answer, &c.req)
	return true
}

// flush goes on with an answer that was not taken as a whole.
func (w *worker) flush(c *conn) verdict {
	s := w.s
	n, err := write(c.fd, c.pending)
	c.pending = c.pending[n:]
	switch {
	case len(c.pending) > 0 && (err == nil || err == unix.EAGAIN):
		return full
	case err != nil || c.last:
		s.close(c)
		return over
	}
	c.pending = nil
	c.deadline.Store(s.after(s.o.IdleTimeout))
	return more
}

// maxKept bounds the bytes of requests that are not here as a whole.
const maxKept = 8 << 20

// keep keeps what was read of c until there is more of it, want bytes in all;
// false: there is no room for that.
func (s *Server) keep(c *conn, read []byte, want int) bool {
	if s.kept.Add(int64(want)) > maxKept {
		s.kept.Add(-int64(want))
		return false
	}
	c.part = append(make([]byte, 0, want), read...)
	return true
}
