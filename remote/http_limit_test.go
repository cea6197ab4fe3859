package remote_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/rollway/rollway/line"
	"github.com/rollway/rollway/remote"
)

func TestSplitAtMaxBatch(t *testing.T) {
	peer := startHTTPPeer(t)
	w := open(t, peer.URL+"/", remote.Options{MaxBatch: 1000})
	long := `{"msg":"` + strings.Repeat("x", 3000) + "\"}\n"
	all := numbered(0, 100) + long + numbered(100, 200)
	write(t, w, strings.TrimSuffix(all, "\n"))
	peer.want(t, all)
	for i, r := range peer.seen() {
		if len(r.body) > 1000 && r.body != long || !strings.HasSuffix(r.body, "\n") {
			t.Errorf("request %d: %d bytes, %q", i, len(r.body), r.body)
		}
	}
	settled(t, w, 201, 201)
}

func TestSplitAfter413(t *testing.T) {
	t.Parallel()
	peer := startHTTPPeer(t)
	const limit = 100 << 10
	peer.always = func(rw http.ResponseWriter, r *http.Request) {
		if r.ContentLength > limit {
			status(413, "too much")(rw, r)
		}
	}
	w := open(t, peer.URL+"/", remote.Options{})
	all := numbered(0, 20_000)
	write(t, w, all)
	peer.want(t, all)
	settled(t, w, 20_000, 20_000)
	for _, r := range peer.seen()[1:] {
		if len(r.body) == len(all) {
			t.Error("the whole body was sent twice")
		}
	}

	// What the peer takes was learned: no more answers 413.
	before := w.Stats().Retries
	write(t, w, all)
	if after := w.Stats().Retries; after != before {
		t.Errorf("%d retries for a batch after the limit is known", after-before)
	}
	peer.want(t, all+all)

	// A line that is too large by itself is lost, and nothing else.
	var told []error
	w = open(t, peer.URL+"/", remote.Options{OnError: func(err error) { told = append(told, err) }})
	long := `{"msg":"` + strings.Repeat("x", limit) + "\"}\n"
	write(t, w, numbered(0, 10)+long+numbered(10, 20))
	peer.want(t, all+all+numbered(0, 20))
	settled(t, w, 21, 20)
	if d := w.Stats().Dropped; d != (line.Drops{TooLarge: 1}) {
		t.Errorf("Dropped = %+v", d)
	}
	w.Told()
	if len(told) != 1 || !strings.Contains(told[0].Error(), "413") {
		t.Errorf("OnError was told %v", told)
	}
}

// A server that answers before it has read the body, and closes.
func TestEarly413(t *testing.T) {
	t.Parallel()
	peer := newHTTPPeer(t)
	serve := peer.Config.Handler
	peer.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.ContentLength > 300<<10 {
			rw.Header().Set("Connection", "close")
			status(413, "too much")(rw, r)
			return
		}
		serve.ServeHTTP(rw, r)
	})
	peer.Start()
	w := open(t, peer.URL+"/", remote.Options{})
	all := numbered(0, 100_000)
	for n := 0; n < len(all); {
		m, err := w.Write([]byte(all[n:]))
		if n += m; err != nil {
			t.Logf("after %d bytes: %v", n, err)
		}
	}
	peer.want(t, all)
	settled(t, w, 100_000, 100_000)
}

// A server that refuses a large body by its length and closes at once: its
// answer is not lost in the reset that follows. It has a second to come, so this
// test runs by itself.
func TestRude413(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			for in := bufio.NewReader(c); ; {
				if line, err := in.ReadString('\n'); err != nil || line == "\r\n" {
					break
				}
			}
			io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			c.Close()
		}
	}()
	w := open(t, "http://"+l.Addr().String()+"/", remote.Options{})
	line := strings.Repeat("x", 4<<20-1) + "\n"
	for range 20 {
		write(t, w, line)
	}
	settled(t, w, 20, 0)
	if d := w.Stats().Dropped; d.TooLarge != 20 {
		t.Errorf("Dropped = %+v", d)
	}
}
