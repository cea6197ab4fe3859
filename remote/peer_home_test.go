package remote_test

import (
	"net"
	"net/http"
	"sync"
	"testing"
)

// A home is an HTTP server at one address that can be taken down and up again.
type home struct {
	t       testing.TB
	addr    string
	handler http.Handler

	mu     sync.Mutex
	server *http.Server // nil while it is down
	served sync.WaitGroup
}

// newHome returns a server that is down.
func newHome(t testing.TB, handler http.Handler) *home {
	h := &home{t: t, addr: reserve(t), handler: handler}
	t.Cleanup(h.down)
	return h
}

func (h *home) up() {
	h.t.Helper()
	l, err := net.Listen("tcp", h.addr)
	if err != nil {
		h.t.Error(err)
		return
	}
	server := &http.Server{Handler: h.handler, ErrorLog: discardLog}
	h.mu.Lock()
	h.server = server
	h.mu.Unlock()
	h.served.Go(func() { server.Serve(l) })
}

// down cuts all connections, also amid requests.
func (h *home) down() {
	h.mu.Lock()
	server := h.server
	h.server = nil
	h.mu.Unlock()
	if server != nil {
		server.Close()
		h.served.Wait()
	}
}
