package remote_test

import (
	"io"
	"net/http"
	"sync"
	"testing"
)

// A home is an HTTP server at one address that can be taken down and up again.
type home struct {
	t       testing.TB
	addr    string
	handler http.Handler

	mu       sync.Mutex
	server   *http.Server // nil while it is down
	served   sync.WaitGroup
	requests sync.WaitGroup // of server
	stalled  chan struct{}  // requests wait for it or their end, and then fail; nil while none does
}

// newHome returns a server that is down.
func newHome(t testing.TB, handler http.Handler) *home {
	h := &home{t: t, addr: reserve(t), handler: handler}
	t.Cleanup(h.down)
	return h
}

func (h *home) up() {
	h.t.Helper()
	l, err := listenAt("tcp", h.addr)
	if err != nil {
		h.t.Error(err)
		return
	}
	server := &http.Server{ErrorLog: discardLog}
	server.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { h.serve(server, rw, r) })
	h.mu.Lock()
	h.server = server
	h.mu.Unlock()
	h.served.Go(func() { server.Serve(l) })
}

// down cuts all connections, also amid requests, and waits for these.
func (h *home) down() {
	h.mu.Lock()
	server := h.server
	h.server = nil
	h.mu.Unlock()
	if server != nil {
		server.Close()
		h.served.Wait()
		h.requests.Wait()
	}
}

func (h *home) serve(server *http.Server, rw http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	stalled, here := h.stalled, h.server == server
	if here {
		h.requests.Add(1)
	}
	h.mu.Unlock()
	if !here {
		panic(http.ErrAbortHandler) // it came as the server went
	}
	defer h.requests.Done()
	if stalled == nil {
		h.handler.ServeHTTP(rw, r)
		return
	}
	io.Copy(io.Discard, r.Body) // else the end of the request is not seen
	select {
	case <-stalled:
	case <-r.Context().Done():
	}
	rw.WriteHeader(http.StatusServiceUnavailable)
}

func (h *home) stall() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stalled = make(chan struct{})
}

// heal ends a stall and takes the server up if it is down.
func (h *home) heal() {
	h.mu.Lock()
	stalled, down := h.stalled, h.server == nil
	h.stalled = nil
	h.mu.Unlock()
	if stalled != nil {
		close(stalled)
	}
	if down {
		h.up()
	}
}
