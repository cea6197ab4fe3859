package httpfast

import (
	"context"
	"io"
	"net"
	"net/http"
	"time"

	"golang.org/x/sys/unix"
)

type handedKey struct{}

// Behind prepares h, which is to serve the listener of Rest, to give connections
// back: once it has read a request as a whole whose answer is one of
// Options.Handler's, and has the answer, the connection is hijacked, by which
// net/http hands out what it has read beyond that request. The Server sends the
// answer and goes on. h.Handler must be set, and must answer such requests as
// Options.Handler does.
func (s *Server) Behind(h *http.Server) {
	next, connContext := h.Handler, h.ConnContext
	h.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if connContext != nil {
			ctx = connContext(ctx, c)
		}
		if c, ok := c.(*handed); ok && c.s == s {
			ctx = context.WithValue(ctx, handedKey{}, c)
		}
		return ctx
	}
	h.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, _ := r.Context().Value(handedKey{}).(*handed); c != nil && s.maySend(c, r) {
			s.answerBehind(w, r, c, next)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// maySend reports whether the answer to r, which came over c to net/http, can be
// sent here. That of HEAD cannot: it has a length and no body.
func (s *Server) maySend(c *handed, r *http.Request) bool {
	if !r.ProtoAtLeast(1, 1) || r.ProtoMajor != 1 || r.Close || r.Method == http.MethodHead || s.leaving.Load() {
		return false
	}
	if c.stays > 0 {
		c.stays--
		return false
	}
	asked := *r
	asked.Body = http.NoBody
	return s.o.Takes(&asked)
}

// A lentAnswer is what a handler of net/http's writes its answer to.
type lentAnswer struct {
	answer
	w http.ResponseWriter // that of net/http
}

// Timed reports that net/http may have to send it.
func (a *lentAnswer) Timed() bool { return false }

// SetReadDeadline is for http.ResponseController.
func (a *lentAnswer) SetReadDeadline(t time.Time) error {
	return http.NewResponseController(a.w).SetReadDeadline(t)
}

// SetWriteDeadline is for http.ResponseController.
func (a *lentAnswer) SetWriteDeadline(t time.Time) error {
	return http.NewResponseController(a.w).SetWriteDeadline(t)
}

// send has net/http send the answer.
func (a *lentAnswer) send() {
	if a.code != 0 {
		a.w.WriteHeader(a.code)
		a.w.Write(a.body) // who is gone needs no answer
	}
}

// A lentBody is a body that net/http reads.
type lentBody struct {
	io.ReadCloser
	left  int64 // bytes of it; -1: unknown
	ended bool
}

// Read implements io.Reader.
func (b *lentBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left > 0 {
		b.left -= int64(n)
	}
	b.ended = b.ended || err == io.EOF || b.left == 0
	return n, err
}

// answerBehind has next answer r, which came over c to net/http, and takes c back
// if nothing of r is left to be read.
func (s *Server) answerBehind(w http.ResponseWriter, r *http.Request, c *handed, next http.Handler) {
	a := &lentAnswer{w: w, answer: answer{header: w.Header()}}
	body := &lentBody{ReadCloser: r.Body, left: r.ContentLength, ended: r.ContentLength == 0}
	asked := *r
	asked.Body = body
	next.ServeHTTP(a, &asked)
	if !body.ended || !s.takeBack(c, a, r.Method == http.MethodPost) {
		a.send()
	}
}

// takeBack sends the answer and goes on with c; false: neither.
func (s *Server) takeBack(handed *handed, a *lentAnswer, posted bool) bool {
	if a.code == 0 {
		a.WriteHeader(http.StatusOK)
	}
	if a.close || !s.begin() {
		return false
	}
	defer s.running.Done()
	fd, err := duplicate(handed.TCPConn)
	if err != nil {
		return false
	}
	c := &conn{fd: fd, remote: handed.from, answered: true, posted: posted, back: true, inVain: handed.inVain}
	c.ctx.Context = context.Background()
	c.state.Store(busy)
	s.conns.put(c) // from now on Shutdown waits for it
	_, buf, err := http.NewResponseController(a.w).Hijack()
	mine := false
	if err == nil {
		handed.ended.Do(func() { mine = true })
		handed.TCPConn.Close()
	}
	if !mine {
		s.conns.remove(c)
		unix.Close(fd)
		return err == nil // it was closed at this moment, by http.Server.Close
	}
	s.counts.back.Add(1)
	ahead, _ := buf.Reader.Peek(buf.Reader.Buffered())
	if len(ahead)+len(handed.first) > 0 {
		c.part = append(append([]byte(nil), ahead...), handed.first...)
		s.kept.Add(int64(cap(c.part)))
	}
	if s.sendFirst(c, a) {
		s.enlist(c)
	}
	return true
}

// begin reports whether the Server goes on, and if so has it wait for
// running.Done before it ends.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.leaving.Load() {
		return false
	}
	s.running.Add(1)
	return true
}

// sendFirst sends what can be sent of an answer over c, which the caller owns;
// false: c is closed.
func (s *Server) sendFirst(c *conn, a *lentAnswer) bool {
	now := time.Now()
	out := a.finish(s.dates.at(now))
	n, err := write(c.fd, out)
	switch {
	case n < len(out) && (err == nil || err == unix.EAGAIN):
		c.pending = out[n:]
		c.deadline.Store(int64(now.Sub(s.began) + s.o.WriteTimeout))
	case err != nil:
		s.close(c)
		return false
	default:
		c.deadline.Store(int64(now.Sub(s.began) + s.o.IdleTimeout))
	}
	return true
}
