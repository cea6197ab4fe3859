package receiver

import (
	"errors"
	"io"
	"net/http"
	"net/netip"
	"os"
	"runtime/debug"
	"time"

	"github.com/rollway/rollway/collector/admission"
	"github.com/rollway/rollway/internal/backoff"
)

// A BodyProtocol is a Protocol whose requests may last for hours. Their bodies are read as a
// connection is, and events are stored as they arrive. What is stored stays so whatever
// follows; Protocol.Decode only reads events again that were rejected.
type BodyProtocol interface {
	Protocol
	StreamProtocol
	// Accepts returns why a request is refused by its header, preferably a *Refusal.
	Accepts(h http.Header) error
}

// Stop ends the bodies of BodyProtocols that are being read.
func (r *Receiver) Stop() { r.stop() }

// serveBody stores the events of a body as they arrive.
func (r *endpoint) serveBody(rw http.ResponseWriter, w *workspace, req *http.Request, p BodyProtocol, encoding string) (f failure) {
	if err := p.Accepts(req.Header); err != nil {
		f = closing(http.StatusBadRequest, "%v", err)
		if refusal := (*Refusal)(nil); errors.As(err, &refusal) {
			f.code = refusal.Code
		}
		return f
	}
	s := &stream{
		batcher: batcher{r: r.Receiver, ctx: r.ctx, space: r.get(), peer: req.RemoteAddr, receiver: req.URL.Path,
			request: req, durability: w.options.Durability},
		addr:     netip.AddrPortFrom(w.client(req), 0),
		protocol: p,
		maxFrame: r.maxFrame(p),
		started:  true,
	}
	from := &arriving{s: s, src: req.Body, declared: encoding}
	s.conn = &body{from, http.NewResponseController(rw), w.conn, w.sender, r.Receiver}
	end := r.endReads(r.ctx, s.conn)
	defer end()
	defer func() {
		cause := recover()
		from.end()
		s.close(cause, debug.Stack)
		w.outcome.total = s.total
		if cause != nil {
			f = refuse(http.StatusInternalServerError, "the collector failed on this request; its log says why")
		}
	}()
	s.space.setSender(w.sender)
	s.space.charge(w.principal)
	s.session = p.Open()
	s.serve()
	s.conn.SetReadDeadline(time.Time{})
	return s.why
}

// body is that of a request, as the connection of a stream.
type body struct {
	*arriving
	*http.ResponseController
	conn   *admission.Conn // that it comes over; nil: none
	sender Sender          // nil: unknown
	r      *Receiver
}

// Read waits as long as the sender has to.
func (b *body) Read(p []byte) (int, error) {
	if b.sender != nil {
		for wait := b.sender.Wait(time.Now()); wait > 0 && backoff.Sleep(b.r.ctx, wait); {
			wait = b.sender.Wait(time.Now())
		}
	}
	return b.arriving.Read(p)
}

// Write has nobody to read: the answer is made when all was read.
func (b *body) Write(p []byte) (int, error) { return len(p), nil }

// Await tells that the peer is to send more, and Arrived that it has.
func (b *body) Await() {
	if b.conn != nil {
		b.conn.Await()
	}
}

func (b *body) Arrived() {
	if b.conn != nil {
		b.conn.Arrived()
	}
}

// Between two events the rest of a request has to come, too.
func (b *body) End()   { b.Await() }
func (b *body) Begin() { b.Arrived() }

// broken notes why a body is read no further.
func (s *stream) broken(err error) {
	if _, is := s.conn.(*body); !is || err == io.EOF || s.why.code != 0 {
		return
	}
	var f failed
	switch {
	case errors.As(err, &f):
		s.why = f.failure
	case s.ctx.Err() != nil:
		s.why = closing(http.StatusServiceUnavailable, "the collector is stopping; what has arrived is stored")
	case errors.Is(err, os.ErrDeadlineExceeded):
		s.why = closing(http.StatusRequestTimeout, "nothing more has arrived within %v", s.r.opts.IdleTimeout)
	default:
		s.why = failure{code: http.StatusBadRequest, text: "the body broke off: " + err.Error(), aborted: true, close: true}
	}
}
