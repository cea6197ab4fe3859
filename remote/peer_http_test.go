package remote_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// A request is what an httpPeer saw.
type request struct {
	header http.Header
	body   string // unpacked
}

// An httpPeer is a real HTTP server that keeps what it answers 2xx to. The
// answers given to next are for the next requests, one each; nil and no answer
// mean 200.
type httpPeer struct {
	*httptest.Server
	mu       sync.Mutex
	next     []http.HandlerFunc
	always   http.HandlerFunc
	requests []request
	taken    bytes.Buffer
}

func newHTTPPeer(t testing.TB) *httpPeer {
	p := new(httpPeer)
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(p.serve))
	t.Cleanup(p.Server.Close)
	return p
}

func startHTTPPeer(t testing.TB) *httpPeer {
	p := newHTTPPeer(t)
	p.Start()
	return p
}

func (p *httpPeer) serve(rw http.ResponseWriter, r *http.Request) {
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			http.Error(rw, err.Error(), http.StatusBadRequest)
			return
		}
		body = z
	}
	data, err := io.ReadAll(body)
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	p.requests = append(p.requests, request{r.Header.Clone(), string(data)})
	answer := p.always
	if len(p.next) > 0 {
		answer, p.next = p.next[0], p.next[1:]
	}
	p.mu.Unlock()
	status := &statusRecorder{ResponseWriter: rw, code: http.StatusOK}
	if answer != nil {
		r.Body = io.NopCloser(bytes.NewReader(data))
		answer(status, r)
	}
	if status.code/100 == 2 {
		p.mu.Lock()
		p.taken.Write(data)
		p.mu.Unlock()
	}
}

type statusRecorder struct {
	http.ResponseWriter
	code int
}

func (s *statusRecorder) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}

func (s *statusRecorder) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func (p *httpPeer) answer(next ...http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = append(p.next, next...)
}

func (p *httpPeer) seen() []request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]request(nil), p.requests...)
}

func (p *httpPeer) bytes() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return bytes.Clone(p.taken.Bytes())
}

func (p *httpPeer) want(t testing.TB, lines string) {
	t.Helper()
	if got := string(p.bytes()); got != lines {
		t.Errorf("the peer took %d bytes %.300q, want %d bytes %.300q", len(got), got, len(lines), lines)
	}
}

func status(code int, body string, header ...string) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			rw.Header().Set(header[i], header[i+1])
		}
		rw.WriteHeader(code)
		io.WriteString(rw, body)
	}
}
