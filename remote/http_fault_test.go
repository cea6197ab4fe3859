package remote_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/remote"
)

func TestRetriesWithinOneWrite(t *testing.T) {
	t.Parallel()
	peer := startHTTPPeer(t)
	peer.answer(status(500, ""), status(503, "", "Retry-After", "1"), nil)
	w := open(t, peer.URL+"/", remote.Options{Retries: 2})
	begin := time.Now()
	write(t, w, numbered(0, 3))
	if d := time.Since(begin); d < 1050*time.Millisecond {
		t.Errorf("three attempts took %v, want at least 50 ms and the 1 s that the peer asked for", d)
	}
	peer.want(t, numbered(0, 3))
	settled(t, w, 3, 3)
	keys := map[string]int{}
	for _, r := range peer.seen() {
		keys[r.header.Get("Idempotency-Key")]++
	}
	if len(keys) != 1 || w.Stats().Retries != 2 {
		t.Errorf("keys %v, Stats %+v: want one key and two retries", keys, w.Stats())
	}
	// A wait that cannot end in time is not begun.
	peer.answer(status(503, "", "Retry-After", "600"))
	begin = time.Now()
	if _, err := w.Write([]byte(numbered(3, 4))); err == nil || time.Since(begin) > time.Minute { // Timeout is 2 minutes
		t.Errorf("Write = %v after %v, want an error at once", err, time.Since(begin))
	}
}

// A kept connection that the server has closed is replaced within the Write.
func TestStaleConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	bodies := make(chan string, 10)
	go func() {
		for i := 0; ; i++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			in := bufio.NewReader(c)
			for k := range 2 {
				req, err := http.ReadRequest(in)
				if err != nil {
					break
				}
				body, _ := io.ReadAll(req.Body)
				bodies <- string(body)
				if i == 0 && k == 1 {
					break // the second request gets no answer
				}
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			}
			c.Close()
		}
	}()
	w := open(t, "http://"+l.Addr().String()+"/", remote.Options{})
	write(t, w, numbered(0, 1))
	write(t, w, numbered(1, 2))
	if s := w.Stats(); s.Retries != 1 || s.Connects != 2 || s.Requests != 2 {
		t.Errorf("Stats = %+v, want one retry on a second connection", s)
	}
	settled(t, w, 2, 2)
	if a, b, c := <-bodies, <-bodies, <-bodies; a != numbered(0, 1) || b != numbered(1, 2) || c != b {
		t.Errorf("bodies %q, %q, %q", a, b, c)
	}
}

func TestServerThatAcceptsAndCloses(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	w := open(t, "http://"+l.Addr().String()+"/", remote.Options{Token: "secret-token"})
	n, err := w.Write([]byte(numbered(0, 3)))
	if n != 0 || err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("Write = %d, %v, want 0 and an error", n, err)
	}
	settled(t, w, 0, 0)
}

func TestStalledServer(t *testing.T) {
	t.Parallel()
	peer := startHTTPPeer(t)
	release := make(chan struct{})
	peer.always = func(rw http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
		rw.WriteHeader(500)
	}
	defer close(release)

	t.Run("request timeout", func(t *testing.T) {
		w := open(t, peer.URL+"/", remote.Options{})
		w.SetAttempt(200 * time.Millisecond)
		_, err := w.Write([]byte(numbered(0, 1)))
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no full answer within 200ms") {
			t.Errorf("Write = %v", err)
		}
		settled(t, w, 0, 0)
	})
	t.Run("Shutdown", func(t *testing.T) {
		w := open(t, peer.URL+"/", remote.Options{})
		errs := make(chan error, 3)
		for i := range 3 {
			go func() {
				_, err := w.Write([]byte(numbered(i, i+1)))
				errs <- err
			}()
		}
		eventually(t, "three lines pending", func() bool { return w.Stats().Pending == 3 })
		ledger(w).Check(t)
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		if err := w.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Flush = %v, want deadline exceeded", err)
		}
		begin := time.Now()
		err := w.Shutdown(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "3 lines") {
			t.Errorf("Shutdown = %v, want deadline exceeded and 3 lines", err)
		}
		if d := time.Since(begin); d > 50*time.Second { // the time for a request is a minute
			t.Errorf("Shutdown took %v", d)
		}
		for range 3 {
			if err := <-errs; !errors.Is(err, os.ErrClosed) {
				t.Errorf("broken off Write = %v, want os.ErrClosed", err)
			}
		}
		settled(t, w, 0, 0)
		if again := w.Close(); again != err {
			t.Errorf("Close = %v, want what Shutdown returned", again)
		}
		if s := w.Stats(); s.Returned != 3 || s.Connected {
			t.Errorf("Stats = %+v", s)
		}
	})
}
