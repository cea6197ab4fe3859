package httpserver

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"
)

// A deadline reaches the connection once it has passed, and a later one takes it back.
func TestDeadline(t *testing.T) {
	var d deadline
	var calls []time.Time
	below := func(t time.Time) error { calls = append(calls, t); return nil }
	begin := time.Now()
	future := begin.Add(time.Hour)
	d.set(future, below)
	d.check(begin, below)
	if len(calls) > 0 {
		t.Errorf("a deadline to come reaches the connection: %v", calls)
	}
	d.check(future, below)
	d.check(future.Add(time.Second), below)
	if len(calls) != 1 || !calls[0].Equal(future) {
		t.Errorf("a deadline that has passed: %v", calls)
	}
	d.set(future.Add(time.Hour), below)
	if len(calls) != 2 || !calls[1].IsZero() {
		t.Errorf("a later deadline: %v", calls)
	}
	d.set(begin.Add(-time.Hour), below)
	d.set(time.Time{}, below)
	d.set(time.Time{}, below)
	d.check(future.Add(2*time.Hour), below)
	if len(calls) != 4 || !calls[3].IsZero() {
		t.Errorf("a deadline in the past, and none: %v", calls)
	}
}

// Deadlines that a handler sets end its reads and writes, and the connection goes on
// if the handler sets later ones.
func TestDeadlinesOfHandlers(t *testing.T) {
	const short = 20 * time.Millisecond
	ended := make(chan error, 1)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		deadlines := http.NewResponseController(w)
		switch r.URL.Path {
		case "/read":
			deadlines.SetReadDeadline(time.Now().Add(short))
			_, err := io.ReadAll(r.Body)
			ended <- err
			deadlines.SetReadDeadline(time.Now().Add(time.Minute))
			_, err = io.ReadAll(r.Body)
			ended <- err
		case "/write":
			deadlines.SetWriteDeadline(time.Now().Add(short))
			_, err := io.Copy(w, zeros{})
			ended <- err
		}
	})
	addr := serve(t, newServer(t, Options{Handler: handler, WriteTimeout: short}))
	c := dial(t, addr)
	request := post("/read", "", "hello")
	io.WriteString(c, request[:len(request)-2])
	if err := <-ended; !os.IsTimeout(err) {
		t.Errorf("reading ended with %v", err)
	}
	io.WriteString(c, request[len(request)-2:])
	if err := <-ended; err != nil {
		t.Errorf("after a later deadline reading ended with %v", err)
	}
	io.WriteString(dial(t, addr), post("/write", "", "x"))
	if err := <-ended; err == nil {
		t.Error("a client that reads nothing holds its handler for ever")
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// The context of a request without a body ends when its client goes away, also after
// requests with a body on the same connection.
func TestContextEnds(t *testing.T) {
	began, ended := make(chan struct{}), make(chan error, 1)
	addr := serve(t, newServer(t, Options{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			io.Copy(w, r.Body)
			return
		}
		close(began)
		<-r.Context().Done()
		ended <- context.Cause(r.Context())
	})}))
	c := dial(t, addr)
	for range 3 {
		ask(t, c, post("/", "", "hello"))
	}
	io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	<-began
	c.Close()
	if err := <-ended; err != context.Canceled {
		t.Error(err)
	}
}

// Over TLS too a connection ends with its last answer: no deadline that is only noted
// keeps net/http from going on.
func TestNoDeadlineHoldsTLS(t *testing.T) {
	certificates := httptest.NewTLSServer(nil)
	defer certificates.Close()
	s := newServer(t, Options{Handler: echo, TLS: &tls.Config{Certificates: certificates.TLS.Certificates}})
	s.endSweep()
	c := tls.Client(dial(t, serve(t, s)), &tls.Config{InsecureSkipVerify: true})
	for range 2 {
		if _, body := ask(t, c, post("/", "", "hello")); body != "hello" {
			t.Errorf("answered %q", body)
		}
	}
	ask(t, c, post("/", "Connection: close\r\n", "hello"))
	if _, err := c.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("after the last answer: %v", err)
	}
}
