package remote_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/remote"
)

func TestPostIsByteExact(t *testing.T) {
	for _, compression := range []string{"", "none", "gzip"} {
		t.Run("compression="+compression, func(t *testing.T) {
			peer := startHTTPPeer(t)
			w := open(t, peer.URL+"/api/logs", remote.Options{
				Compression: compression, Token: "tok", Header: http.Header{"X-Scope": {"a", "b"}},
			})
			all := numbered(0, 100) + "{\"msg\":\"\u00e9\u2028\\n\\u0000\"}\n"
			write(t, w, all[:len(all)/2])
			write(t, w, numbered(100, 5000))
			got := peer.seen()
			if len(got) != 2 {
				t.Fatalf("%d requests, want 2", len(got))
			}
			h := got[0].header
			for name, want := range map[string]string{
				"Content-Type": "application/x-ndjson", "Authorization": "Bearer tok", "X-Scope": "a",
				"Content-Encoding": map[string]string{"gzip": "gzip"}[compression],
			} {
				if h.Get(name) != want {
					t.Errorf("%s is %q, want %q", name, h.Get(name), want)
				}
			}
			if len(h.Values("X-Scope")) != 2 || !strings.HasPrefix(h.Get("User-Agent"), "rollway/") {
				t.Errorf("header %v", h)
			}
			if a, b := h.Get("Idempotency-Key"), got[1].header.Get("Idempotency-Key"); a == "" || a == b {
				t.Errorf("idempotency keys %q and %q of different batches", a, b)
			}
			half := all[:len(all)/2]
			peer.want(t, half+"\n"+numbered(100, 5000))
			s := w.Stats()
			if s.Connects != 1 || !s.Connected || s.Requests != 2 || s.BytesSent == 0 || s.Errors != 0 {
				t.Errorf("Stats = %+v", s)
			}
			settled(t, w, strings.Count(half, "\n")+1+4900, strings.Count(half, "\n")+1+4900)
		})
	}
}

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
	if d := w.Stats().Dropped; d != (remote.Drops{TooLarge: 1}) {
		t.Errorf("Dropped = %+v", d)
	}
	if len(told) != 1 || !strings.Contains(told[0].Error(), "413") {
		t.Errorf("OnError was told %v", told)
	}
}

// A server that answers before it has read the body, and closes.
func TestEarly413(t *testing.T) {
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
// answer is not lost in the reset that follows.
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

func TestRefusedLines(t *testing.T) {
	for _, c := range []struct {
		code int
		body string
		want uint64
		told string
	}{
		{200, `{"accepted":3,"rejected":[{"index":1,"line":2,"reason":"json","detail":"not JSON"}]}`, 1, "line 2 of its request: not JSON"},
		{207, `{"rejected":[{"index":1,"reason":"no"},{"index":2,"reason":"x"}]}`, 2, "the first: no"},
		{400, `{"error":"nothing","accepted":0,"rejected":[{"reason":"bad"}],"rejected_total":4}`, 4, "bad"},
		{200, `{"accepted":1,"first_offset":7}`, 3, "gives no reason"},
		{200, `{"accepted":9}`, 0, ""},
		{200, `{"accepted":"yes"}`, 0, ""},
		{200, `fine`, 0, ""},
		{204, ``, 0, ""},
	} {
		peer := startHTTPPeer(t)
		peer.answer(status(c.code, c.body))
		var told []error
		w := open(t, peer.URL+"/", remote.Options{OnError: func(err error) { told = append(told, err) }})
		write(t, w, numbered(0, 4))
		write(t, w, numbered(4, 8))
		settled(t, w, 8, 8-int(c.want))
		if d := w.Stats().Dropped; d.Rejected != c.want || d.Total() != c.want {
			t.Errorf("%d %s: Dropped = %+v, want %d", c.code, c.body, d, c.want)
		}
		if c.want == 0 && len(told) > 0 || c.want > 0 && (len(told) != 1 || !strings.Contains(told[0].Error(), c.told)) {
			t.Errorf("%d %s: OnError was told %v, want %q", c.code, c.body, told, c.told)
		}
	}
}

func TestReportIsRateLimited(t *testing.T) {
	peer := startHTTPPeer(t)
	peer.always = status(200, `{"accepted":0,"rejected":[{"line":1,"reason":"bad"}]}`)
	var mu sync.Mutex
	var told []string
	w := open(t, peer.URL+"/", remote.Options{OnError: func(err error) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, err.Error())
		panic("a careless callback")
	}})
	for i := range 20 {
		write(t, w, numbered(i, i+1))
	}
	if err := w.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	if len(told) != 2 || !strings.Contains(told[0], "refused 1 lines") || !strings.Contains(told[1], "refused 19 lines") {
		t.Errorf("OnError was told %q", told)
	}
	settled(t, w, 20, 0)
}

// Nothing of these answers is the lines' fault: the caller keeps them.
func TestAnswersThatKeepTheLines(t *testing.T) {
	date := time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	for _, c := range []struct {
		code   int
		header []string
		wait   time.Duration // at least
		advice string
	}{
		{302, []string{"Location", "/elsewhere?k=1"}, 0, "redirects are not followed"},
		{400, nil, 0, "NDJSON"},
		{401, nil, 0, "Options.Token"},
		{403, nil, 0, "Options.Token"},
		{404, nil, 0, "/api/logs"},
		{405, nil, 0, "/api/logs"},
		{408, nil, 0, ""},
		{415, nil, 0, "Options.Compression"},
		{418, nil, 0, "check the URL"},
		{429, []string{"Retry-After", "7"}, 7 * time.Second, ""},
		{429, []string{"Retry-After", date}, 9 * time.Minute, ""}, // cut to 10 min
		{429, []string{"Retry-After", "soon"}, 0, ""},
		{500, nil, 0, ""},
		{503, []string{"Retry-After", "0"}, 0, ""},
	} {
		peer := startHTTPPeer(t)
		peer.answer(status(c.code, "the body says why secret-token "+strings.Repeat("why ", 5000), c.header...))
		w := open(t, peer.URL+"/?key=secret-token", remote.Options{Token: "secret-token"})
		p := []byte(numbered(0, 1))
		n, err := w.Write(p)
		if n != 0 || err == nil {
			t.Fatalf("%d: Write = %d, %v, want 0 and an error", c.code, n, err)
		}
		for _, want := range []string{fmt.Sprint(c.code), "the body says why", c.advice} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%d: error lacks %q: %.300s", c.code, want, err)
			}
		}
		if len(err.Error()) > 5<<10 || strings.Contains(err.Error()+w.Stats().LastError, "secret") {
			t.Errorf("%d: %d bytes of error, or a secret in it", c.code, len(err.Error()))
		}
		var asks interface{ RetryAfter() time.Duration }
		if !errors.As(err, &asks) || asks.RetryAfter() < c.wait || c.wait == 0 && asks.RetryAfter() != 0 {
			t.Errorf("%d: RetryAfter of %.100v is not %v", c.code, err, c.wait)
		}
		settled(t, w, 0, 0)
		if s := w.Stats(); s.Returned != 1 || s.Errors != 1 || s.LastErrorTime.IsZero() {
			t.Errorf("%d: Stats = %+v", c.code, s)
		}
		write(t, w, string(p))
		peer.want(t, string(p))
		settled(t, w, 1, 1)
	}
}

// A body that a peer refuses as a whole may be the fault of one line.
func TestPoisonLine(t *testing.T) {
	peer := startHTTPPeer(t)
	peer.always = func(rw http.ResponseWriter, r *http.Request) {
		if b, _ := io.ReadAll(r.Body); strings.Contains(string(b), "poison") {
			status(400, `{"error":"the body is not JSON","accepted":0}`)(rw, r)
		}
	}
	w := open(t, peer.URL+"/", remote.Options{})
	const poison = "[poison\n"
	if n, err := w.Write([]byte(poison)); n != 0 || err == nil {
		t.Fatalf("Write to a peer that never took a line = %d, %v, want 0 and an error", n, err)
	}
	write(t, w, numbered(0, 5)+poison+numbered(5, 10)+poison)
	peer.want(t, numbered(0, 10))
	settled(t, w, 12, 10)
	// A peer that suddenly refuses everything is not believed for long.
	n, err := w.Write([]byte(strings.Repeat(poison, 100)))
	if err == nil || n > 16*len(poison) {
		t.Errorf("Write of 100 refused lines = %d, %v, want an error after 16 lines", n, err)
	}
	ledger(w).Check(t)
}

func TestBlankLinesDoNotBlock(t *testing.T) {
	peer := startHTTPPeer(t)
	w := open(t, peer.URL+"/", remote.Options{})
	write(t, w, "\n \n")
	write(t, w, numbered(0, 1))
	peer.want(t, numbered(0, 1))
	settled(t, w, 3, 1)
}

func TestRetriesWithinOneWrite(t *testing.T) {
	peer := startHTTPPeer(t)
	peer.answer(status(500, ""), status(503, "", "Retry-After", "1"), nil)
	w := open(t, peer.URL+"/", remote.Options{Retries: 2})
	begin := time.Now()
	write(t, w, numbered(0, 3))
	if d := time.Since(begin); d < 1100*time.Millisecond {
		t.Errorf("three attempts took %v, want 100 ms and the 1 s that the peer asked for", d)
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
	if _, err := w.Write([]byte(numbered(3, 4))); err == nil || time.Since(begin) > time.Second {
		t.Errorf("Write = %v after %v, want an error at once", err, time.Since(begin))
	}
}

// The key says "the same batch again" only where it is.
func TestIdempotencyKey(t *testing.T) {
	peer := startHTTPPeer(t)
	w := open(t, peer.URL+"/", remote.Options{})
	a, b := []byte(numbered(0, 1)), []byte(numbered(1, 2))
	send := func(p []byte, code int) string {
		t.Helper()
		peer.answer(status(code, ""))
		_, err := w.Write(p)
		if (err == nil) != (code == 200) {
			t.Fatalf("status %d: %v", code, err)
		}
		seen := peer.seen()
		return seen[len(seen)-1].header.Get("Idempotency-Key")
	}
	first, again, done := send(a, 500), send(a, 503), send(a, 200)
	if first != again || first != done {
		t.Errorf("keys of one batch: %q, %q, %q", first, again, done)
	}
	if next := send(a, 200); next == first {
		t.Errorf("the same bytes as a new batch have the old key %q", next)
	}
	failed := send(a, 500)
	if other := send(b, 200); other == failed {
		t.Errorf("other bytes have the key of the failed batch")
	}
}

func TestServerRestart(t *testing.T) {
	peer := startHTTPPeer(t)
	addr := peer.Listener.Addr().String()
	w := open(t, peer.URL+"/", remote.Options{})
	write(t, w, numbered(0, 2))
	peer.Close()
	if n, err := w.Write([]byte(numbered(2, 4))); n != 0 || err == nil {
		t.Fatalf("Write without a server = %d, %v", n, err)
	}
	again := newHTTPPeer(t)
	again.Listener.Close()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	again.Listener = l
	again.Start()
	write(t, w, numbered(2, 4))
	again.want(t, numbered(2, 4))
	settled(t, w, 4, 4)
	if s := w.Stats(); s.Returned != 2 || s.Connects != 2 {
		t.Errorf("Stats = %+v", s)
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
		w := open(t, peer.URL+"/", remote.Options{RequestTimeout: 50 * time.Millisecond})
		_, err := w.Write([]byte(numbered(0, 1)))
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no full answer within 50ms") {
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
		if d := time.Since(begin); d > 2*time.Second {
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

// net/http may read a request's body after the answer: the caller's bytes must
// not be touched once Write has returned. The race detector watches.
func TestBytesAreTheCallersAfterWrite(t *testing.T) {
	peer := newHTTPPeer(t)
	peer.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.WriteHeader(http.StatusServiceUnavailable) // with the body unread
	})
	peer.Start()
	w := open(t, peer.URL+"/", remote.Options{})
	p := []byte(numbered(0, 50_000))
	for range 5 {
		if n, err := w.Write(p); n != 0 || err == nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
		for i := range p {
			p[i]++
			p[i]--
		}
	}
	settled(t, w, 0, 0)
}
