// Package httpserver serves HTTP: HTTP/1.1 and HTTP/2, plain or over TLS, all by
// net/http. A Server adds what net/http leaves to its user: a limit on connections,
// memory of headers that counts against a budget, a close after ambiguous requests,
// an answer to the PROXY protocol, and a shutdown that proxies do not notice.
package httpserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollway/rollway/collector/admission"
)

// MaxHeader bounds the header of a request, give or take a few KiB. A longer one is
// answered with 431.
const MaxHeader = 64 << 10

// Options of a Server. All of them except TLS, OnShutdown and Refused are required.
type Options struct {
	Handler http.Handler
	Probe   func(*http.Request) bool // is answered even over a connection beyond Limit

	Admission *admission.Controller // shares memory of headers
	Limit     *admission.Limit      // on connections, of all listeners together
	TLS       *tls.Config           // nil: plain HTTP

	ReadHeaderTimeout time.Duration // for a header to arrive
	ReadTimeout       time.Duration // for a header and its body
	WriteTimeout      time.Duration // the least of those that handlers set
	IdleTimeout       time.Duration // between two requests of a connection

	OnShutdown func() // ends handlers that would go on for ever
	ErrorLog   *log.Logger

	// Refused gets the connections that end before Handler has a request: too many are open
	// ("connections"), their TLS handshake fails ("tls"), they begin with a PROXY header
	// or break HTTP/2 ("protocol"), or net/http cannot read a header, which may also end early ("header").
	// It gets requests for whose header there is no memory, too ("service_unavailable").
	Refused func(from net.Addr, reason, text string)
}

// A Server serves any number of listeners. Its methods are safe for concurrent use.
type Server struct {
	o       Options
	http    http.Server
	leaving atomic.Bool // answers tell clients that their connection ends

	mu        sync.Mutex
	listeners []*admission.Listener // guarded by mu
	conns     map[*conn]struct{}    // guarded by mu; open

	ended    chan struct{} // closed when sweep is to end
	end      sync.Once
	sweeping sync.WaitGroup

	date atomic.Pointer[[]string] // the Date of answers
}

// New returns a Server. Its caller calls Shutdown or Close.
func New(o Options) *Server {
	s := &Server{o: o, conns: make(map[*conn]struct{}), ended: make(chan struct{})}
	s.http = http.Server{
		Handler:           http.HandlerFunc(s.serveHTTP),
		ReadHeaderTimeout: o.ReadHeaderTimeout,
		ReadTimeout:       o.ReadTimeout,
		IdleTimeout:       o.IdleTimeout,
		MaxHeaderBytes:    MaxHeader,
		ErrorLog:          log.New(&errorLog{s}, "", 0),
		TLSConfig:         o.TLS,
		Protocols:         new(http.Protocols),
		HTTP2:             &http.HTTP2Config{WriteByteTimeout: o.WriteTimeout},
		ConnContext:       withConn,
		ConnState:         stateChanged,
	}
	s.http.Protocols.SetHTTP1(true)
	s.http.Protocols.SetHTTP2(true)
	s.http.Protocols.SetUnencryptedHTTP2(true) // which gRPC clients speak
	if o.OnShutdown != nil {
		s.http.RegisterOnShutdown(o.OnShutdown)
	}
	s.setDate(time.Now())
	s.sweeping.Go(s.sweep)
	return s
}

// Serve serves the connections of l. It returns nil after Linger, Shutdown or Close.
func (s *Server) Serve(l net.Listener) error {
	limited := s.o.Limit.Listener(l, s.tooMany())
	limited.Refused = func(c net.Conn) { s.refused(c.RemoteAddr(), "connections", tooManyOpen) }
	s.mu.Lock()
	s.listeners = append(s.listeners, limited)
	s.mu.Unlock()
	accepted := &listener{limited, s}
	var err error
	if s.o.TLS != nil {
		err = s.http.ServeTLS(accepted, "", "")
	} else {
		err = s.http.Serve(accepted)
	}
	if errors.Is(err, http.ErrServerClosed) || s.leaving.Load() {
		return nil
	}
	return err
}

// refused tells Options.Refused.
func (s *Server) refused(from net.Addr, reason, text string) {
	if s.o.Refused != nil {
		s.o.Refused(from, reason, text)
	}
}

const tooManyOpen = "too many connections are open; try again later"

// tooMany is what a connection over the limit is told. Nothing can be said before a
// TLS handshake.
func (s *Server) tooMany() []byte {
	if s.o.TLS != nil {
		return nil
	}
	return lastAnswer(http.StatusServiceUnavailable, tooManyOpen)
}

// lastAnswer is an answer in HTTP/1 after which the connection ends.
func lastAnswer(status int, why string) []byte {
	retry := ""
	if status == http.StatusServiceUnavailable {
		retry = "Retry-After: 1\r\n"
	}
	body := `{"error":"` + why + `"}` + "\n"
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\n%sConnection: close\r\nContent-Length: %d\r\n\r\n%s",
		status, http.StatusText(status), retry, len(body), body)
}

// ServeHTTP answers a request that came some other way, as in tests.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.serveHTTP(w, r) }

// serveHTTP is the outermost handler: every request passes here.
func (s *Server) serveHTTP(w http.ResponseWriter, r *http.Request) {
	c, _ := r.Context().Value(connKey{}).(*conn)
	if c == nil {
		s.o.Handler.ServeHTTP(w, r)
		return
	}
	w.Header()["Date"] = *s.date.Load()
	if r.ProtoMajor == 1 && (s.leaving.Load() || c.ambiguous(r)) {
		w.Header().Set("Connection", "close")
	}
	c.reading.Store(false)
	if r.ProtoMajor == 1 {
		c.handling.Store(true)
		defer c.handling.Store(false)
		c.endTurn(false)
	}
	c.admitted.Begin()
	defer c.admitted.End()
	if c.admitted.Over() {
		probe := s.o.Probe(r)
		w.Header().Set("Connection", "close")
		if c.admitted.Answer(probe); !probe {
			s.refused(c.RemoteAddr(), "connections", tooManyOpen)
			refuse(w, r, tooManyOpen)
			return
		}
	}
	c.answering.Store(c.plain && r.ProtoMajor == 1 && r.ContentLength > 0)
	held, ok := c.headerRead(r)
	if r.ProtoMajor >= 2 {
		defer c.streamEnded(held)
		w = offering{w, c.admitted}
	}
	if !ok {
		s.refused(c.RemoteAddr(), "service_unavailable", headerMemory)
		refuse(w, r, headerMemory)
		return
	}
	if r.ProtoMajor == 1 {
		s.o.Handler.ServeHTTP(w, r)
		return
	}
	stream := &streamWriter{ResponseWriter: w}
	s.o.Handler.ServeHTTP(stream, r)
	stream.end(r)
}

// offering tells that a request of HTTP/2 waits for its peer: each has a window of its own, and no
// Write on the connection waits. It works without Flusher: use http.ResponseController.
type offering struct {
	http.ResponseWriter
	conn *admission.Conn
}

// Write implements http.ResponseWriter.
func (o offering) Write(p []byte) (int, error) {
	o.conn.Offer()
	defer o.conn.Taken()
	return o.ResponseWriter.Write(p)
}

// FlushError is for http.ResponseController.
func (o offering) FlushError() error {
	o.conn.Offer()
	defer o.conn.Taken()
	return http.NewResponseController(o.ResponseWriter).Flush()
}

// Unwrap is for http.ResponseController.
func (o offering) Unwrap() http.ResponseWriter { return o.ResponseWriter }

// Linger accepts no more connections, tells clients with each answer that their
// connection ends, and returns when none is left or after d. A proxy that sends a
// request over a kept connection does not know yet that the server stops. If the
// connection were closed, the request would be lost: proxies do not repeat a POST.
func (s *Server) Linger(d time.Duration) {
	s.leaving.Store(true)
	s.mu.Lock()
	listeners := s.listeners
	s.mu.Unlock()
	for _, l := range listeners {
		l.CloseAfterBacklog()
	}
	end := time.NewTimer(d)
	defer end.Stop()
	begin := time.Now()
	for _, l := range listeners { // connections that wait to be accepted do not count yet
		select {
		case <-l.Closed():
		case <-end.C:
			return
		}
	}
	s.o.Limit.AwaitNone(d - time.Since(begin))
}

// Shutdown accepts no more and lets requests end. It cuts off those that have not
// ended when ctx does, and then returns an error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.leaving.Store(true)
	defer s.endSweep()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, net.ErrClosed) { // of listeners that Linger has closed
		err = nil
	}
	if err != nil {
		s.http.Close()
	}
	return err
}

// Close ends everything at once.
func (s *Server) Close() error {
	s.leaving.Store(true)
	defer s.endSweep()
	return s.http.Close()
}

func (s *Server) endSweep() {
	s.end.Do(func() { close(s.ended) })
	s.sweeping.Wait()
}

// errorLog gets the lines of net/http's log. What clients cause, a line for each
// connection, it tells Options.Refused instead of the log.
type errorLog struct{ s *Server }

func (l *errorLog) Write(line []byte) (int, error) {
	for _, of := range [][2]string{{"tls", "http: TLS handshake error from "}, {"protocol", "http2: server connection error from "}} {
		rest, is := strings.CutPrefix(string(line), of[1])
		from, why, _ := strings.Cut(rest, ": ")
		addr, err := netip.ParseAddrPort(from)
		if !is || err != nil || l.s.o.Refused == nil {
			continue
		}
		if why != "EOF\n" { // of a health check, which sends nothing
			l.s.refused(net.TCPAddrFromAddrPort(addr), of[0], strings.TrimSuffix(why, "\n"))
		}
		return len(line), nil
	}
	l.s.o.ErrorLog.Print(string(line))
	return len(line), nil
}
