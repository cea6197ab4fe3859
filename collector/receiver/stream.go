package receiver

import (
	"errors"
	"io"
	"net/http"
	"net/netip"
	"os"
	"time"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/pool"
)

// Sizes of a connection's buffer: at first, and when it grows for speed. It grows
// further only for a longer frame.
const (
	firstRead = 16 << 10
	fastRead  = 64 << 10
)

// maxHeld is how long frames wait for what may belong to them.
const maxHeld = 200 * time.Millisecond

// stream is one connection, owned by its goroutine. Its buffer counts twice
// against the budget: for itself and as much for its lines.
type stream struct {
	batcher
	conn     streamConn
	addr     netip.AddrPort // the peer's
	protocol StreamProtocol
	session  Session
	maxFrame int

	started bool    // what was read shows that the peer does not speak another protocol
	held    bool    // the session waits for what may belong to its last frames
	idle    bool    // nothing has come, it is to wait no more
	why     failure // why it ends before its peer ends it
}

// streamConn is an *admission.Conn, or the body of a request.
type streamConn interface {
	io.ReadWriter
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
	Begin() // an event, see admission.Conn
	End()
	Await()
	Arrived()
}

// serve reads until the connection or ctx ends.
func (s *stream) serve() {
	s.space.dropBuffers() // the pool's may be larger than a connection is worth
	if !s.grow(min(firstRead, s.maxFrame)) {
		return
	}
	if g, speaks := s.session.(Greeter); speaks {
		s.space.answer = g.Greet(s.space.answer[:0])
		if !s.reply() {
			return
		}
	}
	if w, waits := s.session.(Waiter); waits {
		s.waiting = func() { s.write(w.Wait(nil)) } // to store goes on without its client
	}
	for {
		wait := s.r.opts.IdleTimeout
		if s.held {
			wait = min(wait, maxHeld)
		}
		s.conn.SetReadDeadline(time.Now().Add(wait))
		if err := s.ctx.Err(); err != nil { // its deadline may have been overwritten
			s.broken(err)
			s.finish()
			return
		}
		w := s.space
		used := len(w.buf)
		n, err := s.read(w.buf[used:cap(w.buf)], used > 0)
		w.buf = w.buf[:used+n]
		w.wire.n += int64(n)
		sent := int64(n)
		if b, is := s.conn.(*body); is {
			sent = b.took()
		}
		s.r.count.add(func(s *Stats) { s.WireBytes += uint64(sent); s.UnpackedBytes += uint64(n) })
		if n > 0 && !s.started {
			protocol, undecided := otherProtocol(w.buf)
			if protocol != "" {
				s.r.count.reject(s.space, normalize.ReasonSyntax)
				s.turnAway(0, "the peer speaks "+protocol+", this address takes "+s.protocol.Name())
				return
			}
			s.started = !undecided
		}
		full := len(w.buf) == cap(w.buf)
		if n > 0 && s.started && !s.decode(false) {
			return
		}
		if n == 0 && s.held && s.ctx.Err() == nil && errors.Is(err, os.ErrDeadlineExceeded) {
			s.idle = true
			if !s.decode(false) {
				return
			}
			s.idle = false
			continue
		}
		if err != nil {
			s.ended(err)
			s.broken(err)
			s.finish()
			return
		}
		if !s.fit(full) {
			return
		}
	}
}

// read reads what follows. It tells whether the peer owes the rest of a frame, or may stay
// silent.
func (s *stream) read(p []byte, rest bool) (int, error) {
	if rest {
		s.conn.Await()
		defer s.conn.Arrived()
	} else {
		s.conn.End()
		defer s.conn.Begin()
	}
	return s.conn.Read(p)
}

// tlsHandshake is the first byte of a TLS connection, and of no protocol here.
const tlsHandshake = 0x16

// httpMethods are the beginnings of HTTP connections, and of no protocol here.
var httpMethods = []string{"GET ", "HEAD ", "POST ", "PUT ", "OPTIONS ", "DELETE ", "PATCH ", "PRI "}

// proxyHeaders are the beginnings of connections of proxies that name the client by
// the PROXY protocol, in its text and its binary form.
var proxyHeaders = []string{"PROXY TCP4 ", "PROXY TCP6 ", "PROXY UNKNOWN", "\r\n\r\n\x00\r\nQUIT\n"}

// otherProtocol names the protocol that a peer begins to speak, if none of this package
// begins so. undecided says that more bytes are needed to know. HTTP is refused because
// any web page can make a browser post to this address: each line of the body would be
// taken.
func otherProtocol(begin []byte) (name string, undecided bool) {
	if begin[0] == tlsHandshake {
		return "TLS", false
	}
	for _, other := range []struct {
		name   string
		begins []string
	}{{"HTTP", httpMethods}, {"the PROXY protocol", proxyHeaders}} {
		for _, b := range other.begins {
			n := min(len(b), len(begin))
			if string(begin[:n]) != b[:n] {
				continue
			}
			if n == len(b) {
				return other.name, false
			}
			undecided = true
		}
	}
	return "", undecided
}

// decode has the session take what it can from the buffer, stores that and answers. It
// returns false if the connection is to be closed.
func (s *stream) decode(end bool) bool {
	w := s.space
	rest := w.buf
	for full := true; full; {
		c := s.chunk(rest, s.addr, time.Now())
		c.End, c.Holds, c.most = end, !s.idle, len(w.buf) >= s.maxFrame
		w.turn.Begin()
		n, err := s.session.Decode(c)
		w.turn.End()
		w.answer, full, s.held = c.Reply, c.full, c.held
		w.chunk = Chunk{}
		if end && err == nil && n < len(rest) {
			s.r.count.reject(s.space, ReasonTorn)
			s.warn("the connection ended inside of an event")
			if s.why.code == 0 {
				s.why = refuse(http.StatusExpectationFailed, "the body ended inside of an event: its %d bytes are lost", len(rest)-n)
			}
		}
		if s.store() != nil {
			s.why = refuse(http.StatusServiceUnavailable, "not all events could be stored, send them again; the collector's log says why")
			return false
		}
		if !s.reply() {
			return false
		}
		if err != nil {
			s.failed(err)
			return false
		}
		rest = rest[n:]
		full = full && len(rest) > 0
	}
	w.buf = w.buf[:copy(w.buf, rest)]
	pool.Overwrite(w.buf[len(w.buf):])
	return true
}

func (s *stream) reply() bool {
	w := s.space
	if len(w.answer) == 0 {
		return true
	}
	err := s.write(w.answer)
	s.ended(err)
	w.answer = reuse(w.answer)
	pool.Overwrite(w.answer)
	return err == nil
}

func (s *stream) write(p []byte) error {
	s.conn.SetWriteDeadline(time.Now().Add(s.r.opts.BodyTimeout))
	_, err := s.conn.Write(p)
	return err
}

// finish has the session look at what is left when nothing follows.
func (s *stream) finish() {
	if len(s.space.buf) > 0 {
		s.decode(true)
	}
}

// fit gives the buffer room for the next read.
func (s *stream) fit(wasFull bool) bool {
	w := s.space
	size := cap(w.buf)
	all, p := s.r.streams, w.principal
	room := all.Used() <= all.Limit()/2 && all.Of(p) <= all.Most(p)/2 // for speed; the other half is for connections that need it
	switch {
	case len(w.buf) == size && size >= s.maxFrame:
		s.r.count.reject(s.space, normalize.ReasonTooLarge)
		s.turnAway(http.StatusRequestEntityTooLarge, "what the peer sends is too large, the connection is closed", "limit", s.maxFrame)
		return false
	case len(w.buf) == size: // in the middle of a long frame
		return s.grow(min(2*size, s.maxFrame))
	case wasFull && size < fastRead && size < s.maxFrame:
		if next := min(2*size, fastRead, s.maxFrame); room && s.acquire(2*int64(next)) {
			s.resize(next)
		}
	case size > firstRead && len(w.buf) <= firstRead/2 && !wasFull && !room:
		s.shrink(firstRead)
	case size > fastRead && len(w.buf) <= fastRead/2: // the long frame is over
		s.shrink(fastRead)
	}
	return true
}

func (s *stream) shrink(size int) {
	s.resize(size)
	s.release(s.space.held - 2*int64(size))
}

// grow makes the buffer size bytes large, waiting for the budget as long as a
// sender may be silent.
func (s *stream) grow(size int) bool {
	if !s.await(2 * int64(size)) {
		s.why = s.r.busy()
		s.finish()
		return false
	}
	s.resize(size)
	return true
}

func (s *stream) resize(size int) {
	s.space.buf = append(make([]byte, 0, size), s.space.buf...)
}
