package httpserver

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollway/rollway/collector/admission"
)

// listener makes a conn of each connection.
type listener struct {
	net.Listener
	s *Server
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.s.accepted(c), nil
}

// A conn is a connection as net/http reads it, below TLS. It looks at what is read
// of a header and never changes it: where a request ends is for net/http alone.
type conn struct {
	net.Conn
	s        *Server
	admitted *admission.Conn // the same
	plain    bool            // what is read here is HTTP

	deadlines struct {
		sync.Mutex
		read, write deadline // guarded by the mutex
	}

	// While it is true, the body of the request has a Content-Length, and net/http
	// reads single bytes only to notice that the client is gone. Below TLS it is never
	// true: what is read here then is records.
	answering atomic.Bool

	streams atomic.Int32 // requests of HTTP/2 in progress

	turn    admission.Turn // of the goroutine that reads, outside of HTTP/1 handlers
	turning struct {
		sync.Mutex
		held   bool // turn is to end; guarded by the mutex
		closed bool // guarded by the mutex
	}
	handling atomic.Bool // a handler of HTTP/1 reads, and takes turns of its own

	reading atomic.Bool // there is a header that no handler has got
	told    atomic.Bool // Options.Refused knows why it ends

	mu      sync.Mutex
	greeted bool   // something was read before; guarded by mu
	header  header // of the current request; guarded by mu
}

type connKey struct{}

// withConn is http.Server.ConnContext.
func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(admission.WithConn(ctx, connOf(c).admitted), connKey{}, connOf(c))
}

// connOf returns the conn that net/http serves as c.
func connOf(c net.Conn) *conn {
	if encrypted, is := c.(*tls.Conn); is {
		c = encrypted.NetConn()
	}
	return c.(*conn)
}

// stateChanged is http.Server.ConnState.
func stateChanged(c net.Conn, state http.ConnState) {
	switch state {
	case http.StateIdle:
		connOf(c).reading.Store(false)
		connOf(c).answering.Store(false)
		connOf(c).requestEnded(false)
	case http.StateActive:
		connOf(c).reading.Store(true)
	case http.StateClosed, http.StateHijacked:
		connOf(c).requestEnded(true)
		if connOf(c).reading.Load() && !connOf(c).told.Load() {
			connOf(c).s.refused(c.RemoteAddr(), "header", "the header of a request cannot be read (400, 431, 501 or 505), or ended early")
		}
	}
}

// Read implements net.Conn.
//
// When net/http has read the body of a request, it starts a goroutine that reads one
// byte, to end the request's context if the client goes away. Nobody needs that for
// requests with a body, and it costs two system calls, so Read reads nothing.
func (c *conn) Read(p []byte) (int, error) {
	if len(p) == 1 && c.answering.Load() {
		return 0, nil
	}
	c.endTurn(false)
	n, err := c.Conn.Read(p)
	if n > 0 && len(p) > 1 && !c.handling.Load() {
		c.beginTurn()
	}
	if n > 0 && c.plain {
		if refused := c.look(p[:n], len(p) == 1); refused != nil {
			return 0, refused
		}
	}
	return n, err
}

// Write implements net.Conn. It may wait for the peer, so it ends the turn.
func (c *conn) Write(p []byte) (int, error) {
	c.endTurn(false)
	return c.Conn.Write(p)
}

// beginTurn waits for the turn to work on what was read: TLS, frames and headers. Without
// turns, thousands of connections that have sent something run one after the other, and a
// client of another address waits for all of them.
func (c *conn) beginTurn() {
	c.turn.Use(c.s.o.Admission.CPU, c.admitted.Payer())
	c.turn.Begin()
	c.turning.Lock()
	defer c.turning.Unlock()
	if c.turning.held = !c.turning.closed; c.turning.closed {
		c.turn.End()
	}
}

// endTurn ends the turn, if there is one. Any goroutine may write or close.
func (c *conn) endTurn(closed bool) {
	c.turning.Lock()
	defer c.turning.Unlock()
	if c.turning.held {
		c.turning.held = false
		c.turn.End()
	}
	c.turning.closed = c.turning.closed || closed
}

// CloseWrite lets net/http send a last answer that is not lost by a reset.
func (c *conn) CloseWrite() error { return c.admitted.CloseWrite() }

// look looks at what was read of plain HTTP. After an error the connection has been
// answered and ends.
func (c *conn) look(p []byte, background bool) error {
	why := c.judge(p, background)
	if why == nil {
		return nil
	}
	c.told.Store(true)
	c.s.refused(c.RemoteAddr(), why.reason, why.text)
	c.endTurn(false)
	c.refuse(why.answer)
	return errRefused{}
}

// A refusal is why a connection ends, for Options.Refused and for the client.
type refusal struct {
	reason, text string
	answer       []byte
}

func newRefusal(status int, reason, text string) *refusal {
	return &refusal{reason, text, lastAnswer(status, text)}
}

// judge returns why to refuse the connection, or nil.
func (c *conn) judge(p []byte, background bool) *refusal {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.greeted {
		c.greeted = true
		if speaksProxy(p) {
			c.header.ignored = true
			return noProxy
		}
		// What net/http keeps of an HTTP/2 header is bounded by its text.
		c.header.ignored = bytes.HasPrefix(p, http2Begin)
	}
	if c.header.ignored {
		return nil
	}
	if background && c.header.parsed { // the next request has begun to arrive
		c.header.ahead = append(c.header.ahead, p...)
		return nil
	}
	c.header.scan(p)
	if !c.header.parsed && !c.acquireLocked(c.header.estimate()) {
		c.header.ignored = true // refuse reads on
		return tooManyHeaders
	}
	return nil
}

// http2Begin begins a connection that speaks HTTP/2 without TLS.
var http2Begin = []byte("PRI ")

// farewell bounds how long a refused connection may take to read its answer.
const farewell = 100 * time.Millisecond

// refuse sends answer and drains what the client has sent already: otherwise the
// system would reset the connection and discard the answer.
func (c *conn) refuse(answer []byte) {
	c.Conn.SetDeadline(time.Now().Add(farewell))
	c.Conn.Write(answer) // fails if the client is gone
	if c.CloseWrite() == nil {
		io.Copy(io.Discard, io.LimitReader(c.Conn, 1<<20))
	}
}

// errRefused ends a connection. It is a timeout because net/http answers 400 to any
// other error.
type errRefused struct{}

func (errRefused) Error() string   { return "the connection is refused" }
func (errRefused) Timeout() bool   { return true }
func (errRefused) Temporary() bool { return false }

// proxyHeaders begin the connections of proxies that name the client by the PROXY
// protocol, in its text and in its binary form. Neither is a request.
var proxyHeaders = [][]byte{[]byte("PROXY "), []byte("\r\n\r\n\x00\r\nQUIT\n")}

func speaksProxy(begin []byte) bool {
	for _, b := range proxyHeaders {
		if bytes.HasPrefix(begin, b) {
			return true
		}
	}
	return false
}

// noProxy is the answer to such a proxy, or to the client that it forwards.
var noProxy = newRefusal(http.StatusBadRequest, "protocol", "the connection begins with a header of the PROXY protocol, which is not spoken here: "+
	"turn it off (send-proxy, proxy_protocol), and have the proxy name clients in X-Forwarded-For or Forwarded")
