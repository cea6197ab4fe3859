package httpfast

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/testkit"
)

func all(*http.Request) bool { return true }

func listen(t testing.TB) net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func dial(t testing.TB, s *Server) net.Conn {
	conn, err := net.Dial("tcp", s.Rest().Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	return conn
}

// ask sends a request and returns the answer's status and body.
func ask(t testing.TB, conn net.Conn, request string) (int, string, *http.Response) {
	t.Helper()
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body), resp
}

// until waits for what must come.
func until(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}

// While handlers wait, whether they have said so or not, others are served.
func TestHandlersThatWait(t *testing.T) {
	for _, said := range []bool{true, false} {
		proceed, waiting := make(chan struct{}), atomic.Int32{}
		s := newServer(t, listen(t), Options{Takes: all, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/wait" {
				return
			}
			if said {
				WillBlock(context.WithoutCancel(r.Context()))
				WillBlock(r.Context())
			}
			waiting.Add(1)
			<-proceed
		})})
		const many = 40
		conns := make([]net.Conn, many)
		for i := range conns {
			conns[i] = dial(t, s)
			io.WriteString(conns[i], post("/wait", "", "x"))
		}
		until(t, "all wait", func() bool { return waiting.Load() == many })
		if code, _, _ := ask(t, dial(t, s), post("/", "", "x")); code != 200 {
			t.Errorf("%d while others wait", code)
		}
		close(proceed)
		for _, conn := range conns {
			if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || resp.StatusCode != 200 {
				t.Errorf("a request that had to wait: %v, %v", resp, err)
			}
		}
		for i := 0; i < 3*many; i++ { // each lets one worker leave
			ask(t, conns[i%many], post("/", "", "x"))
		}
		until(t, "too many workers leave", func() bool {
			ask(t, conns[0], post("/", "", "x"))
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.active == s.limit
		})
	}
}

// newServerAndRest serves with h until the test ends, here and behind net/http.
func newServerAndRest(t *testing.T, h http.Handler) *Server {
	s := newServer(t, listen(t), Options{Takes: all, Handler: h})
	rest := &http.Server{Handler: h}
	s.Behind(rest)
	go rest.Serve(s.Rest())
	t.Cleanup(func() { rest.Close() })
	return s
}

// askFromMany sends a request on each of n connections.
func askFromMany(t *testing.T, s *Server, n int) []net.Conn {
	conns := make([]net.Conn, n)
	for i := range conns {
		conns[i] = dial(t, s)
		io.WriteString(conns[i], post("/", "", "x"))
	}
	return conns
}

// answered wants an answer with status 200 on each of conns.
func answered(t *testing.T, conns []net.Conn) {
	t.Helper()
	for _, conn := range conns {
		if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || resp.StatusCode != 200 {
			t.Fatalf("%v, %v", resp, err)
		}
	}
}

// TestWaitingWorkersAreBounded: more requests than may wait here wait in net/http.
func TestWaitingWorkersAreBounded(t *testing.T) {
	proceed, waiting := make(chan struct{}), atomic.Int32{}
	h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		WillBlock(r.Context())
		waiting.Add(1)
		<-proceed
	})
	s := newServerAndRest(t, h)
	conns := askFromMany(t, s, maxBlocked+50)
	until(t, "all wait", func() bool { return int(waiting.Load()) == len(conns) })
	if n := int(s.blocked.Load()); n < maxBlocked || n > maxBlocked+s.limit {
		t.Errorf("%d workers wait", n)
	}
	if n := s.Stats().HandedOver; n == 0 {
		t.Error("no connection was handed over")
	}
	close(proceed)
	answered(t, conns)
	until(t, "none waits", func() bool { return s.blocked.Load() == 0 })
}

// TestStuckWorkers: however many handlers do not come back and have not said so,
// what is not for here is handed over.
func TestStuckWorkers(t *testing.T) {
	proceed, waiting := make(chan struct{}), atomic.Int32{}
	h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			waiting.Add(1)
			<-proceed
		}
	})
	s := newServerAndRest(t, h)
	conns := askFromMany(t, s, maxBlocked+100)
	if code, _, _ := ask(t, dial(t, s), "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); code != 200 {
		t.Errorf("%d while others are stuck", code)
	}
	until(t, "all are in handlers", func() bool { return int(waiting.Load()) == len(conns) })
	close(proceed)
	answered(t, conns)
	if code, _, _ := ask(t, dial(t, s), post("/", "", "x")); code != 200 {
		t.Errorf("%d afterwards", code)
	}
}

// TestNothingIsKeptOfTheClosed: a connection that breaks while its client owes it
// the taking of an answer, and has asked for more.
func TestNothingIsKeptOfTheClosed(t *testing.T) {
	long := strings.Repeat("x", 8<<20)
	s := newServer(t, listen(t), Options{Takes: all, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, long) })})
	conn := dial(t, s)
	io.WriteString(conn, post("/", "", "x")+post("/", "", "y"))
	until(t, "the second request is kept", func() bool { return s.kept.Load() > 0 })
	conn.(*net.TCPConn).SetLinger(0)
	conn.Close()
	until(t, "it is forgotten", func() bool { return s.kept.Load() == 0 })
}

// TestPipelinesGiveWay: a client that always has the next request there already
// gets its answers in full while its connection goes over to net/http.
func TestPipelinesGiveWay(t *testing.T) {
	h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
	s := newServerAndRest(t, h)
	const requests = 20000
	conn := dial(t, s)
	go func() {
		for range requests / 100 {
			io.WriteString(conn, strings.Repeat(post("/", "", strings.Repeat("x", 3000)), 100))
		}
	}()
	from := bufio.NewReader(conn)
	for i := range requests {
		if resp, err := http.ReadResponse(from, nil); err != nil || resp.StatusCode != 200 {
			t.Fatalf("answer %d: %v, %v", i, resp, err)
		}
	}
}

// A panic costs its own connection only.
func TestPanic(t *testing.T) {
	var text bytes.Buffer
	var mu sync.Mutex
	s := newServer(t, listen(t), Options{Takes: all, ErrorLog: log.New(lockedWriter{&mu, &text}, "", 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/panic":
			panic("broken")
		case "/abort":
			panic(http.ErrAbortHandler)
		}
	})})
	other := dial(t, s)
	for _, path := range []string{"/panic", "/abort"} {
		conn := dial(t, s)
		io.WriteString(conn, post(path, "", "x"))
		if b, err := io.ReadAll(conn); err != nil || len(b) > 0 {
			t.Errorf("%s: %q, %v", path, b, err)
		}
		if code, _, _ := ask(t, other, post("/", "", "x")); code != 200 {
			t.Errorf("%d after %s", code, path)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if n := strings.Count(text.String(), "panic serving 127.0.0.1:"); n != 1 || !strings.Contains(text.String(), "broken") {
		t.Errorf("logged %d times: %s", n, &text)
	}
}

type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// A connection that says nothing is closed, before its first request and after.
func TestTimeouts(t *testing.T) {
	s := newServer(t, listen(t), Options{Takes: all, Handler: http.NotFoundHandler(), HeaderTimeout: 100 * time.Millisecond})
	if b, err := io.ReadAll(dial(t, s)); err != nil || len(b) > 0 {
		t.Errorf("without a request: %q, %v", b, err)
	}
	if n := len(s.conns.all()); n > 0 {
		t.Errorf("%d connections are left", n)
	}
	s = newServer(t, listen(t), Options{Takes: all, Handler: http.NotFoundHandler(), IdleTimeout: 100 * time.Millisecond})
	conn := dial(t, s)
	if code, _, _ := ask(t, conn, post("/", "", "x")); code != 404 {
		t.Errorf("%d", code)
	}
	if b, err := io.ReadAll(conn); err != nil || len(b) > 0 {
		t.Errorf("after a request: %q, %v", b, err)
	}
	if n := len(s.conns.all()); n > 0 {
		t.Errorf("%d connections are left", n)
	}
}

// A body that does not come, and headers that are not whole, are net/http's to
// wait for, and what was read is not lost.
func TestSlowRequestsAreHandedOver(t *testing.T) {
	s := newServer(t, listen(t), Options{Takes: all, Handler: http.NotFoundHandler(), ReadTimeout: 100 * time.Millisecond})
	for _, sent := range []string{"P", "POST / HTTP/1.1\r\n", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345"} {
		conn := dial(t, s)
		io.WriteString(conn, sent)
		handed, err := s.Rest().Accept()
		if err != nil {
			t.Fatal(err)
		}
		if got, want := handed.RemoteAddr().String(), conn.LocalAddr().String(); got != want {
			t.Errorf("from %s, want %s", got, want)
		}
		io.WriteString(conn, " and more")
		conn.Close()
		var b bytes.Buffer
		if _, err := io.Copy(&b, handed); err != nil || b.String() != sent+" and more" {
			t.Errorf("%q and %v of %q and more", &b, err, sent)
		}
		handed.Close()
	}
	if n := s.kept.Load(); n != 0 {
		t.Errorf("%d bytes count as kept", n)
	}
	if n := len(s.conns.all()); n > 0 {
		t.Errorf("%d connections are left", n)
	}
}

// What is kept of requests that are not whole is bounded: who comes then is
// net/http's at once.
func TestKeptIsBounded(t *testing.T) {
	s := newServer(t, listen(t), Options{Takes: all, Handler: http.NotFoundHandler()})
	first := dial(t, s)
	io.WriteString(first, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n1")
	until(t, "it is kept", func() bool { return s.kept.Load() > 0 })
	s.kept.Add(maxKept)
	conn := dial(t, s)
	io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n1")
	handed, err := s.Rest().Accept()
	if err != nil {
		t.Fatal(err)
	}
	handed.Close()
	s.kept.Add(-maxKept)
	if code, _, _ := ask(t, first, "23"); code != 404 {
		t.Errorf("%d", code)
	}
	if n := s.kept.Load(); n != 0 {
		t.Errorf("%d bytes count as kept", n)
	}
}

// An answer that its client takes slowly arrives whole, and the requests behind
// it are answered; one that it does not take ends the connection.
func TestSlowReaders(t *testing.T) {
	answer := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/long" {
			w.Write(answer)
		}
	})
	second := post("/", "", "y")
	s := newServer(t, listen(t), Options{Takes: all, Handler: h})
	conn := dial(t, s)
	io.WriteString(conn, post("/long", "", "x")+second)
	until(t, "the second request waits", func() bool { return s.kept.Load() == int64(len(second)) })
	r := bufio.NewReader(conn)
	for i, want := range []int{len(answer), 0} {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		if err != nil || len(b) != want || want > 0 && !bytes.Equal(b, answer) {
			t.Errorf("answer %d has %d bytes, %v", i, len(b), err)
		}
	}
	if n := s.kept.Load(); n != 0 {
		t.Errorf("%d bytes count as kept", n)
	}
	s = newServer(t, listen(t), Options{Takes: all, Handler: h, WriteTimeout: 100 * time.Millisecond})
	io.WriteString(dial(t, s), post("/long", "", "x")+second)
	until(t, "who takes nothing is cut off", func() bool { return s.Stats().Requests == 1 && len(s.conns.all()) == 0 })
	if n := s.kept.Load(); n != 0 {
		t.Errorf("%d bytes count as kept", n)
	}
}

// Shutdown answers what has begun to arrive, and leaves nothing behind.
func TestShutdown(t *testing.T) {
	begun, proceed := make(chan struct{}), make(chan struct{})
	s := newServer(t, listen(t), Options{Takes: all, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			close(begun)
			<-proceed
		}
		io.Copy(w, r.Body)
	})})
	fresh, used, partial, working := dial(t, s), dial(t, s), dial(t, s), dial(t, s)
	ask(t, used, post("/", "", "x"))
	whole := post("/", "", "partial")
	io.WriteString(partial, whole[:len(whole)-3])
	until(t, "a part is kept", func() bool { return s.kept.Load() > 0 })
	io.WriteString(working, post("/wait", "", "working"))
	<-begun
	done := make(chan error, 1)
	go func() { done <- s.Shutdown(t.Context()) }()
	for _, c := range []net.Conn{fresh, used} {
		if b, err := io.ReadAll(c); err != nil || len(b) > 0 {
			t.Errorf("an idle connection: %q, %v", b, err)
		}
	}
	if _, err := net.Dial("tcp", s.Rest().Addr().String()); err == nil {
		t.Error("a connection is accepted")
	}
	if _, body, resp := ask(t, partial, "ial"); body != "partial" || !resp.Close {
		t.Errorf("a request that was on its way: %q, close %v", body, resp.Close)
	}
	select {
	case err := <-done:
		t.Fatalf("Shutdown did not wait: %v", err)
	default:
	}
	close(proceed)
	if _, body, resp := ask(t, working, ""); body != "working" || !resp.Close {
		t.Errorf("a request at work: %q, close %v", body, resp.Close)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	s.running.Wait()
}

// After Leave nobody connects, and those who have may ask once more: over a
// connection that was used, is new, or was complete and not accepted yet.
func TestLeave(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
	s := newServer(t, listen(t), Options{Takes: all, Handler: h})
	fresh, used := dial(t, s), dial(t, s)
	ask(t, used, post("/", "", "x"))
	until(t, "both are accepted", func() bool { return s.Stats().Connections == 2 })
	if err := s.Leave(); err != nil {
		t.Fatal(err)
	}
	if _, err := net.Dial("tcp", s.Rest().Addr().String()); err == nil {
		t.Error("a connection is accepted")
	}
	for name, c := range map[string]net.Conn{"fresh": fresh, "used": used} {
		if _, body, resp := ask(t, c, post("/", "", name)); body != name || !resp.Close {
			t.Errorf("%s: %q, close %v", name, body, resp.Close)
		}
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}

	l := listen(t)
	s, err := New(l.(*net.TCPListener), Options{Takes: all, Handler: h, HeaderTimeout: time.Minute, ReadTimeout: time.Minute, WriteTimeout: time.Minute, IdleTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	waiting := dial(t, s)
	io.WriteString(waiting, post("/", "", "not accepted yet"))
	if err := s.Leave(); err != nil {
		t.Fatal(err)
	}
	if _, body, resp := ask(t, waiting, ""); body != "not accepted yet" || !resp.Close {
		t.Errorf("%q, close %v", body, resp.Close)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// A connection that begins with a PROXY header is told that it must not, and so is
// the log, once a second.
func TestProxyHeader(t *testing.T) {
	var mu sync.Mutex
	var text bytes.Buffer
	s := newServer(t, listen(t), Options{Takes: all, Handler: http.NotFoundHandler(), ErrorLog: log.New(lockedWriter{&mu, &text}, "", 0)})
	behind := &http.Server{Handler: http.NotFoundHandler()}
	go behind.Serve(s.Rest())
	defer behind.Close()
	for _, header := range []string{"PROXY TCP4 192.0.2.1 192.0.2.2 40000 80\r\n", "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x01\xc0\x00\x02\x02\x9c\x40\x00\x50"} {
		code, body, resp := ask(t, dial(t, s), header+post("/", "", "x"))
		if code != 400 || !strings.Contains(body, "PROXY protocol") || !resp.Close {
			t.Errorf("%.12q: %d, %q, close %v", header, code, body, resp.Close)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if n := strings.Count(text.String(), "speaks the PROXY protocol"); n == 0 || n > 2 {
		t.Errorf("it says %q", text.String())
	}
}

// A Shutdown whose time is over leaves a handler at work alone.
func TestShutdownInTime(t *testing.T) {
	begun, proceed := make(chan struct{}), make(chan struct{})
	s := newServer(t, listen(t), Options{Takes: all, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(begun)
		<-proceed
	})})
	io.WriteString(dial(t, s), post("/", "", "x"))
	<-begun
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(proceed)
	s.running.Wait()
}

// Many connections at once, each with requests in a row and in pieces: every
// answer is that of its own request.
func TestManyConnections(t *testing.T) {
	s := newServer(t, listen(t), Options{Takes: all, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Wait") != "" {
			WillBlock(r.Context())
			time.Sleep(time.Millisecond)
		}
		w.Header().Set("X-Of", r.Header.Get("X-Of"))
		io.Copy(w, r.Body)
	})})
	var clients sync.WaitGroup
	for i := range 32 {
		conn := dial(t, s)
		clients.Go(func() {
			r := bufio.NewReader(conn)
			for k := range 60 {
				name := fmt.Sprintf("%d-%d", i, k)
				body := strings.Repeat(name+" ", 1+k*k)
				more := "X-Of: " + name + "\r\n"
				if k%3 == 0 {
					more = "X-Of: c\r\n"
				}
				if (i+k)%7 == 0 {
					more += "X-Wait: 1\r\n"
				}
				text := post("/", more, body)
				cut := len(text) - 1 - k%len(body)
				io.WriteString(conn, text[:cut])
				if k%4 == 0 {
					runtime.Gosched()
				}
				io.WriteString(conn, text[cut:])
				resp, err := http.ReadResponse(r, nil)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
				if b, err := io.ReadAll(resp.Body); err != nil || string(b) != body || k%3 != 0 && resp.Header.Get("X-Of") != name {
					t.Errorf("%s: answered with %.30q, %v", name, b, err)
				}
			}
		})
	}
	clients.Wait()
	if got := s.Stats(); got.Requests != 32*60 || got.HandedOver != 0 {
		t.Errorf("%+v", got)
	}
	if n := s.kept.Load(); n != 0 {
		t.Errorf("%d bytes count as kept", n)
	}
}

// A request on a connection that has had one like it allocates nothing.
func TestNoAllocations(t *testing.T) {
	testkit.NoRace(t, "the race detector allocates")
	buf := make([]byte, 4096)
	s := newServer(t, listen(t), Options{Takes: all, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := r.Body.Read(sharedBody)
		w.Header()["X-Shared"] = sharedValue
		w.Write(sharedBody[:n])
	})})
	conn := dial(t, s)
	request := []byte(post("/", "X-A: b\r\n", "hello"))
	round := func() {
		conn.Write(request)
		conn.Read(buf)
	}
	for range 100 {
		round()
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const rounds = 2000
	for range rounds {
		round()
	}
	runtime.ReadMemStats(&after)
	if n := float64(after.Mallocs-before.Mallocs) / rounds; n > 0.5 {
		t.Errorf("%.2f allocations for each request", n)
	}
	if n := s.Stats().HandedOver; n > 0 {
		t.Errorf("a client that is fast was handed over %d times", n)
	}
}

var (
	sharedValue = []string{"value"}
	sharedBody  = make([]byte, 16)
)

// A connection that waits takes little memory, and no goroutine.
func TestIdleConnections(t *testing.T) {
	testkit.NoRace(t, "the race detector takes memory of its own")
	s := newServer(t, listen(t), Options{Takes: all, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})})
	const many = 1000
	conns := make([]net.Conn, many)
	for i := range conns {
		conns[i] = dial(t, s)
	}
	memory := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc + m.StackInuse)
	}
	until(t, "all are accepted", func() bool { return s.Stats().Connections == many })
	request, buf := []byte(post("/v1/logs", "Content-Type: application/x-protobuf\r\nUser-Agent: test\r\n", "hello")), make([]byte, 4096)
	goroutines, before := runtime.NumGoroutine(), memory()
	for _, c := range conns {
		c.Write(request)
		c.Read(buf)
	}
	workers := int64(runtime.GOMAXPROCS(0)) * 64 << 10 // what they read into
	if each := (memory() - before - workers) / many; each > 8<<10 {
		t.Errorf("%d bytes for what each connection remembers of its request", each)
	}
	if n := runtime.NumGoroutine() - goroutines; n > many/4 {
		t.Errorf("%d goroutines more", n)
	}
}
