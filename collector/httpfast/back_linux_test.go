package httpfast

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// echo answers with the body.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })

// A connection comes back from net/http after each kind of request that is not
// for here, and waits without a goroutine again.
func TestComesBack(t *testing.T) {
	s := newServerAndRest(t, echo)
	long := strings.Repeat("x", 3*maxRequest)
	others := []struct{ name, request, want string }{
		{"no body", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", ""},
		{"chunks", chunked("/", "hello"), "hello"},
		{"a long body", post("/", "", long), long},
		{"long headers", post("/", "X-Long: "+strings.Repeat("l", maxHead)+"\r\n", "y"), "y"},
		{"two lengths", post("/", "Content-Length: 1\r\n", "z"), "z"},
	}
	conns := make([]io.ReadWriter, 0, len(others))
	for _, other := range others {
		conn := dial(t, s)
		conns = append(conns, conn)
		for i, c := range []struct{ request, want string }{{post("/", "", "first"), "first"}, {other.request, other.want}, {post("/", "", "again"), "again"}} {
			if code, body, _ := ask(t, conn, c.request); code != 200 || body != c.want {
				t.Errorf("%s: answer %d is %d, %.20q", other.name, i, code, body)
			}
		}
	}
	if got, n := s.Stats(), uint64(len(others)); got.Requests != 2*n || got.HandedOver != n || got.TakenBack != n {
		t.Errorf("%+v", got)
	}
	until(t, "net/http has left", func() bool {
		stacks := make([]byte, 1<<20)
		return !bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("net/http.(*conn).serve("))
	})
	runtime.KeepAlive(conns)
}

// Expect: 100-continue is net/http's to answer, and the connection comes back.
func TestContinue(t *testing.T) {
	s := newServerAndRest(t, echo)
	client := &http.Client{Transport: &http.Transport{ExpectContinueTimeout: 30 * time.Second, MaxConnsPerHost: 1}}
	defer client.CloseIdleConnections()
	for range 2 {
		req, err := http.NewRequest("POST", "http://"+s.Rest().Addr().String(), strings.NewReader("hello"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Expect", "100-continue")
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(resp.Body); err != nil || string(b) != "hello" {
			t.Errorf("%q, %v", b, err)
		}
		resp.Body.Close()
	}
	if got := s.Stats(); got.Connections != 1 || got.TakenBack == 0 {
		t.Errorf("%+v", got)
	}
}

// A connection that comes back for nothing stays away ever longer, and no longer
// once it was of use.
func TestInVain(t *testing.T) {
	s := newServerAndRest(t, echo)
	conn := dial(t, s)
	const requests = 100
	for i := range requests {
		if code, body, _ := ask(t, conn, chunked("/", fmt.Sprint(i))); code != 200 || body != fmt.Sprint(i) {
			t.Fatalf("answer %d is %d, %q", i, code, body)
		}
	}
	if n := s.Stats().TakenBack; n != 6 { // after 1, 2, 4, 8, 16 and 32 requests
		t.Errorf("came back %d times after %d requests", n, requests)
	}
	for i := range 128 {
		ask(t, conn, post("/", "", "x"))
		if before := s.Stats(); before.Requests > 0 {
			ask(t, conn, chunked("/", "x"))
			ask(t, conn, post("/", "", "x"))
			if after := s.Stats(); after.Requests != before.Requests+1 || after.TakenBack != before.TakenBack+1 {
				t.Errorf("%+v after %+v", after, before)
			}
			return
		}
		if i == 127 {
			t.Error("it has not come back")
		}
	}
}

// What a client sends ahead of its answers is kept, and answered in order, who
// ever reads it; answers that it does not take at once arrive whole.
func TestComesBackWithMore(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 1<<14)
	s := newServerAndRest(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		w.Write(b)
		if r.URL.Path == "/long" {
			io.WriteString(w, long)
		}
	}))
	var all sync.WaitGroup
	for range 8 {
		conn := dial(t, s)
		all.Go(func() {
			var sent, want strings.Builder
			for i := range 60 {
				name := fmt.Sprintf("%d-%s", i, strings.Repeat("b", i*97))
				switch {
				case i%20 == 7:
					sent.WriteString(chunked("/long", name))
					want.WriteString(name + long)
				case i%3 == 1:
					sent.WriteString(chunked("/", name))
					want.WriteString(name)
				default:
					sent.WriteString(post("/", "", name))
					want.WriteString(name)
				}
			}
			sent.WriteString(post("/", "Connection: close\r\n", "end"))
			go io.WriteString(conn, sent.String())
			got, err := bodies(conn)
			if err != nil || got != want.String()+"end" {
				t.Errorf("%d bytes of %d, %v", len(got), want.Len()+3, err)
			}
		})
	}
	all.Wait()
	if s.Stats().TakenBack == 0 {
		t.Error("no connection came back")
	}
	until(t, "nothing is kept", func() bool { return s.kept.Load() == 0 && len(s.conns.all()) == 0 })
}

// Shutdown waits for requests that net/http has read for a connection on its way
// back, and each is answered.
func TestShutdownOnTheWayBack(t *testing.T) {
	begun, proceed := make(chan struct{}), make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		begun <- struct{}{}
		<-proceed
		w.Write(b)
	})
	s := newServer(t, listen(t), Options{Takes: all, Handler: h})
	rest := &http.Server{Handler: h}
	s.Behind(rest)
	go rest.Serve(s.Rest())
	conn := dial(t, s)
	io.WriteString(conn, chunked("/", "hello"))
	<-begun
	done := make(chan error, 2)
	go func() { done <- rest.Shutdown(t.Context()) }()
	go func() { done <- s.Shutdown(t.Context()) }()
	until(t, "it has begun to close", s.closing.Load)
	close(proceed)
	if _, body, _ := ask(t, conn, ""); body != "hello" {
		t.Errorf("%q", body)
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Error(err)
	}
}

// bodies reads answers until the connection ends, and returns their bodies.
func bodies(from io.Reader) (string, error) {
	var all strings.Builder
	for r := bufio.NewReader(from); ; {
		resp, err := http.ReadResponse(r, nil)
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return all.String(), nil
		}
		if err != nil {
			return all.String(), err
		}
		if _, err := io.Copy(&all, resp.Body); err != nil {
			return all.String(), err
		}
	}
}
