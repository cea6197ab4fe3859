package collector

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/rollway/rollway/collector/receiver"
)

// Headers are read before anything is known of their request, and come to many
// times their size in memory: one of 64 KiB that has nothing but short fields to
// 1 MiB. So what they take up is of limits.in_flight too.
const (
	freeHeader   = 1 << 10 // bytes of a header that are not counted
	headerFactor = 16      // bytes of memory for one of a header, as long as its fields are not known
	fieldMemory  = 100     // bytes of memory for a field beside its text
)

// headers counts those of the connections of one http.Server.
type headers struct {
	receiver *receiver.Receiver
	meters   sync.Map // net.Conn → *headerMeter, while net/http serves it
}

// A headerMeter counts the header of one connection until its request is over:
// from when it is whole, and without TLS, where handshakes are read as well, while
// it is being read.
type headerMeter struct {
	all  *headers
	conn net.Conn

	mu     sync.Mutex
	read   int   // bytes of the header, guarded by mu
	held   int64 // guarded by mu
	body   bool  // what is read now is none; guarded by mu
	closed bool  // nothing more is counted; guarded by mu
}

// meterKey is where the headerMeter is in a connection's context.
type meterKey struct{}

// watch has what srv reads of its connections counted.
func (h *headers) watch(srv *http.Server) {
	srv.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		m := &headerMeter{all: h, conn: c}
		if plain, is := c.(interface{ OnRead(func([]byte) error) }); is {
			plain.OnRead(m.add)
		}
		h.meters.Store(c, m)
		return context.WithValue(ctx, meterKey{}, m)
	}
	srv.ConnState = func(c net.Conn, state http.ConnState) {
		if state != http.StateIdle && state != http.StateClosed && state != http.StateHijacked {
			return
		}
		if v, is := h.meters.Load(c); is {
			v.(*headerMeter).end(state != http.StateIdle)
			if state != http.StateIdle {
				h.meters.Delete(c)
			}
		}
	}
	next := srv.Handler
	srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m, _ := r.Context().Value(meterKey{}).(*headerMeter)
		if m == nil {
			next.ServeHTTP(w, r)
			return
		}
		given, ok := m.known(r)
		defer given()
		if !ok {
			w.Header().Set("Retry-After", "1")
			if r.ProtoMajor == 1 {
				w.Header().Set("Connection", "close") // or net/http would wait for the body first
			}
			writeJSON(w, http.StatusServiceUnavailable, map[string]any{"error": "headers of requests take up as much memory as they may; send it again after 1 s"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// noHeaderMemory ends a connection. net/http adds nothing where time has run out, and
// 400 to other errors.
type noHeaderMemory struct{}

func (noHeaderMemory) Error() string   { return "headers take up as much memory as they may" }
func (noHeaderMemory) Timeout() bool   { return true }
func (noHeaderMemory) Temporary() bool { return false }

// add counts what was read. Without memory for it the connection is told so, and
// ends.
func (m *headerMeter) add(p []byte) error {
	if m.take(p) {
		return nil
	}
	refuse(m.conn)
	return noHeaderMemory{}
}

// http2 begins a connection of HTTP/2. What net/http keeps of a header there is
// bounded by the text, and bodies may come before the handler has been called.
var http2 = []byte("PRI ")

// take takes the memory for p, which was read.
func (m *headerMeter) take(p []byte) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = m.closed || m.read == 0 && bytes.HasPrefix(p, http2)
	m.read += len(p)
	more := int64(min(m.read, maxHeader)-freeHeader)*headerFactor - m.held
	if m.body || m.closed || more <= 0 {
		return true
	}
	if !m.all.receiver.Take(more) {
		m.closed = true // what refuse reads is not counted
		return false
	}
	m.held += more
	return true
}

// tooManyHeaders is refusal for want of memory.
var tooManyHeaders = answer503("headers of requests take up as much memory as they may; send it again after 1 s")

// farewell is how long a connection that is refused may take to hear of it.
const farewell = 100 * time.Millisecond

// refuse tells c why it ends. What it has sent already is read, as far as it is
// here: if it were not, the system would throw away what it was told.
func refuse(c net.Conn) {
	c.SetDeadline(time.Now().Add(farewell))
	c.Write(tooManyHeaders) // who is gone needs no answer
	if half, is := c.(interface{ CloseWrite() error }); is && half.CloseWrite() == nil {
		io.Copy(io.Discard, io.LimitReader(struct{ io.Reader }{c}, 1<<20))
	}
}

// known counts the header of r by what it has become. given takes that back for
// HTTP/2, which has many requests at a time; otherwise end does.
func (m *headerMeter) known(r *http.Request) (given func(), ok bool) {
	text, fields := len(r.RequestURI)+len(r.Host), 0
	for name, values := range r.Header {
		for _, v := range values {
			text += len(name) + len(v)
			fields++
		}
	}
	want := max(0, int64(text+fields*fieldMemory)-freeHeader*headerFactor)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.body = true
	nothing := func() {}
	if r.ProtoMajor < 2 {
		if want > m.held && !m.all.receiver.Take(want-m.held) {
			return nothing, false
		}
		if want < m.held {
			m.all.receiver.Give(m.held - want)
		}
		m.held = want
		return nothing, true
	}
	if !m.all.receiver.Take(want) {
		return nothing, false
	}
	return func() { m.all.receiver.Give(want) }, true
}

// end is the end of a request, or of the connection.
func (m *headerMeter) end(last bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all.receiver.Give(m.held)
	m.held, m.read, m.body = 0, 0, false
	m.closed = m.closed || last
}
