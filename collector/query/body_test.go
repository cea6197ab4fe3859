package query

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A closable is a body that tells whether it was closed.
type closable struct {
	io.Reader
	closed bool
}

func (c *closable) Close() error {
	c.closed = true
	return nil
}

// sawClosed is an answer that looks, when it begins, whether the body was closed.
type sawClosed struct {
	*httptest.ResponseRecorder
	body *closable
	was  bool
}

func (s *sawClosed) Write(p []byte) (int, error) {
	s.was = s.was || s.body.closed
	return s.ResponseRecorder.Write(p)
}

// A stream of HTTP/2 does not keep a body that nobody reads for as long as its
// answer lasts. In HTTP/1 it stays with the system.
func TestUnreadBody(t *testing.T) {
	a, _ := serve(t, newStore(t), Options{})
	for path, h := range map[string]http.HandlerFunc{"/api/tail": a.ServeTail, "/api/query": a.ServeQuery} {
		for _, major := range []int{1, 2} {
			body := &closable{Reader: strings.NewReader("x")}
			ctx, cancel := context.WithCancel(context.Background())
			r := httptest.NewRequestWithContext(ctx, "GET", path, body)
			r.ProtoMajor = major
			w := &sawClosed{ResponseRecorder: httptest.NewRecorder(), body: body}
			if path == "/api/tail" {
				cancel()
			}
			h(w, r)
			cancel()
			if body.closed != (major == 2) || path == "/api/tail" && w.was != body.closed {
				t.Errorf("%s, HTTP/%d: closed %v, before the answer %v", path, major, body.closed, w.was)
			}
		}
	}
}
