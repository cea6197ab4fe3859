package receiver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/normalize"
)

func TestBombs(t *testing.T) {
	r := newReceiver(t, &memory{}, Options{})
	url := newServer(t, r).URL
	bomb := bytes.NewBufferString(strings.Repeat(gzipped(strings.Repeat("\x00", 4<<20)), 50)) // 200 MiB in 50 members
	rep := post(t, url, bytes.NewReader(bomb.Bytes()), "Content-Encoding", "gzip")
	if rep.Code != 413 || !strings.Contains(rep.Error, "more than 200 times") {
		t.Errorf("%d KiB that unpack to 200 MiB: %+v", bomb.Len()>>10, rep)
	}
	// Few bytes, packed well, are no bomb.
	line := `{"msg":"the same line again and again"}` + "\n"
	if rep := post(t, url, strings.NewReader(gzipped(strings.Repeat(line, 50_000))), "Content-Encoding", "gzip"); rep.Code != 200 || rep.Accepted != 50_000 {
		t.Errorf("repetitive log: %+v", rep)
	}
	// With a ratio to spare, the other limit holds.
	loose := newReceiver(t, &memory{}, Options{MaxRatio: 1 << 30})
	if rep := post(t, newServer(t, loose).URL, bytes.NewReader(bomb.Bytes())); rep.Code != 413 || !strings.Contains(rep.Error, "more than 67108864 bytes") {
		t.Errorf("without a ratio: %+v", rep)
	}
}

// endless reads as JSON for ever and counts.
type endless struct{ n atomic.Int64 }

func (e *endless) Read(p []byte) (int, error) {
	line := []byte("{\"msg\":\"0123456789012345678901234567890123456789\"}\n")
	n := 0
	for n < len(p) {
		n += copy(p[n:], line)
	}
	e.n.Add(int64(n))
	return n, nil
}

// TestGigabyte sends 1 GiB, with its length and in chunks, and watches what
// is read and what it costs.
func TestGigabyte(t *testing.T) {
	r := newReceiver(t, &memory{}, Options{})
	url := newServer(t, r).URL
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for _, length := range []int64{1 << 30, -1} {
		for range 3 {
			var src endless
			req, _ := http.NewRequest("POST", url, io.LimitReader(&src, 1<<30))
			req.ContentLength = length
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatalf("length %d: %v", length, err)
			}
			if rep := parseReply(t, res); rep.Code != 413 || !res.Close {
				t.Errorf("length %d: %+v, close %v", length, rep, res.Close)
			}
			if sent := src.n.Load(); sent > 32<<20 {
				t.Errorf("length %d: %d MiB were sent before the answer", length, sent>>20)
			}
		}
	}
	runtime.ReadMemStats(&after)
	if grown := int64(after.Sys) - int64(before.Sys); grown > 160<<20 {
		t.Errorf("memory grew by %d MiB", grown>>20)
	}
	if read := r.Stats().WireBytes; read > 3*(16<<20+1) {
		t.Errorf("%d bytes were read", read)
	}
}

// TestExpectContinue checks that a body that will be refused is not asked for.
func TestExpectContinue(t *testing.T) {
	r := newReceiver(t, &memory{}, Options{})
	server := newServer(t, r)
	for header, want := range map[string]int{
		"Content-Length: 1073741824":                    413,
		"Content-Length: 10\r\nContent-Encoding: lzw":   415,
		"Content-Length: 10\r\nOrigin: http://evil.com": 403,
	} {
		c := dial(t, server.Listener.Addr())
		fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n%s\r\n\r\n", header)
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		if rep := parseReply(t, res); rep.Code != want {
			t.Errorf("%q: %+v", header, rep)
		}
	}
}

// TestLengthIsNotTrusted promises 16 MiB and sends no more than it takes to see
// that they are not packed, often.
func TestLengthIsNotTrusted(t *testing.T) {
	r := newReceiver(t, &memory{}, Options{BodyTimeout: time.Minute})
	server := newServer(t, r)
	for range 300 {
		c := dial(t, server.Listener.Addr())
		fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n{\"a\":", 16<<20)
	}
	waitFor(t, "all bodies to have their first memory", func() bool { return r.Stats().InFlight >= 300*2*(maxFirst+1) })
	if got := r.Stats().InFlight; got > 300*2*(maxFirst+1) {
		t.Errorf("%d bytes are held for bodies that never came", got)
	}
	if rep := post(t, server.URL, strings.NewReader("{}")); rep.Code != 200 {
		t.Errorf("beside them: %+v", rep)
	}
}

func dial(t testing.TB, addr net.Addr) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestSlowBody(t *testing.T) {
	r := newReceiver(t, &memory{}, Options{BodyTimeout: 150 * time.Millisecond})
	server := newServer(t, r)
	c := dial(t, server.Listener.Addr())
	start := time.Now()
	fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
	go func() {
		for range 100 { // each byte in time, the body never
			if _, err := io.WriteString(c, " "); err != nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	c.SetReadDeadline(start.Add(time.Minute)) // the body would never end
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if rep := parseReply(t, res); rep.Code != 408 || !res.Close || time.Since(start) < 150*time.Millisecond {
		t.Errorf("after %v: %+v", time.Since(start), rep)
	}
}

func TestHalfSentBody(t *testing.T) {
	m := &memory{}
	r := newReceiver(t, m, Options{})
	begun := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		begun <- struct{}{}
		r.ServeHTTP(w, req)
	}))
	defer server.Close()
	for i, request := range []string{
		"Content-Length: 1000\r\n\r\n{\"a\":1}\n{\"a\":2}\n",
		"Transfer-Encoding: chunked\r\n\r\n8\r\n{\"a\":1}\n\r\n8\r\n{\"a",
		"Transfer-Encoding: chunked\r\n\r\n8\r\n{\"a\":1}\n\r\n",
		"Transfer-Encoding: chunked\r\n\r\nnonsense\r\n",
		"Content-Length: 1000\r\nContent-Encoding: gzip\r\n\r\n" + gzipped("{}\n{}\n")[:20],
		"Content-Length: 1000\r\n\r\n" + gzipped("{}\n{}\n"),
		"Content-Length: 1000\r\n\r\n",
	} {
		c := dial(t, server.Listener.Addr()).(*net.TCPConn)
		io.WriteString(c, "POST / HTTP/1.1\r\nHost: x\r\n"+request)
		<-begun // a reset before is no request
		if i%2 == 0 {
			c.CloseWrite()
			res, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			if rep := parseReply(t, res); rep.Code != 400 || !strings.Contains(rep.Error, "broke off") {
				t.Errorf("%q: %+v", request, rep)
			}
		} else {
			c.SetLinger(0)
		}
		c.Close()
	}
	waitFor(t, "all to be counted", func() bool { return r.Stats().Aborted >= 7 })
	if s := r.Stats(); s.Aborted != 7 || s.Received != 0 || m.count() != 0 {
		t.Errorf("%+v, %d stored", s, m.count())
	}
}

func TestStoreFailures(t *testing.T) {
	m := &memory{}
	r := newReceiver(t, m, Options{})
	url := newServer(t, r).URL
	body := "{}\nbad\n{}\n"
	m.failWith(func(*normalize.Batch) error { return fmt.Errorf("journal: %w", ErrFull) })
	if rep := post(t, url, strings.NewReader(body)); rep.Code != 503 || rep.Header.Get("Retry-After") != "1" || rep.Accepted != 0 || rep.RejectedTotal != 1 {
		t.Errorf("full: %+v", rep)
	}
	m.failWith(func(*normalize.Batch) error { return errOther })
	if rep := post(t, url, strings.NewReader(body)); rep.Code != 500 || rep.Accepted != 0 || strings.Contains(rep.Error, "disk") {
		t.Errorf("broken: %+v", rep)
	}
	m.failWith(func(*normalize.Batch) error { panic("the store is on fire") })
	if rep := post(t, url, strings.NewReader(body)); rep.Code != 500 {
		t.Errorf("panic: %+v", rep)
	}
	m.failWith(func(*normalize.Batch) error { return fmt.Errorf("journal: %w", os.ErrClosed) })
	if rep := post(t, url, strings.NewReader(body)); rep.Code != 503 || rep.Header.Get("Retry-After") != "1" || !strings.Contains(rep.Error, "stopping") {
		t.Errorf("stopping: %+v", rep)
	}
	m.failWith(func(*normalize.Batch) error { return ErrNotSynced })
	if rep := post(t, url, strings.NewReader(body)); rep.Code != 500 || !strings.Contains(rep.Error, "are stored but") {
		t.Errorf("stored but not durable: %+v", rep)
	}
	m.failWith(nil)
	if rep := post(t, url, strings.NewReader(body)); rep.Code != 200 || rep.Accepted != 2 {
		t.Errorf("afterwards: %+v", rep)
	}
	s := r.Stats()
	if s.Received != 18 || s.Stored != 4 || s.Failed != 8 || s.RejectedTotal() != 6 || s.Panics != 1 || s.Requests[500] != 3 {
		t.Errorf("%+v", s)
	}
}

func TestBudget(t *testing.T) {
	m := &memory{}
	entered, leave := make(chan bool), make(chan bool)
	m.failWith(func(*normalize.Batch) error { entered <- true; <-leave; return nil })
	r := newReceiver(t, m, Options{MaxUnpacked: 100_000, InFlight: 1})
	url := newServer(t, r).URL
	if r.opts.InFlight != 300_003 {
		t.Fatalf("budget %d", r.opts.InFlight)
	}
	large := strings.Repeat("{\"a\":\""+strings.Repeat("x", 990)+"\"}\n", 80)
	first := make(chan reply)
	go func() { first <- post(t, url, strings.NewReader(large)) }()
	<-entered
	for _, body := range []io.Reader{strings.NewReader(large), io.LimitReader(&endless{}, 90_000)} {
		rep := post(t, url, body)
		if rep.Code != 503 || rep.Header.Get("Retry-After") != "1" {
			t.Errorf("beside a large request: %+v", rep)
		}
	}
	m.failWith(nil)
	if rep := post(t, url, strings.NewReader(`{"small":1}`)); rep.Code != 200 {
		t.Errorf("a small one fits: %+v", rep)
	}
	leave <- true
	if rep := <-first; rep.Code != 200 {
		t.Errorf("the first: %+v", rep)
	}
	if rep := post(t, url, strings.NewReader(large)); rep.Code != 200 {
		t.Errorf("after it: %+v", rep)
	}
}

// TestClientGoesAwayWhileStoring checks that what the store is at is not
// undone by it.
func TestClientGoesAwayWhileStoring(t *testing.T) {
	m := &memory{}
	entered, leave := make(chan bool), make(chan bool)
	r := New(StoreFunc(func(ctx context.Context, b *normalize.Batch, o StoreOptions) (Stored, error) {
		entered <- true
		<-leave
		if ctx.Err() != nil {
			return Stored{}, ctx.Err()
		}
		return m.Store(ctx, b, o)
	}), Options{})
	t.Cleanup(func() { checkLedger(t, r, m) })
	url := newServer(t, r).URL
	ctx, cancel := context.WithCancel(context.Background())
	req, _ := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader("{}"))
	gone := make(chan error)
	go func() {
		_, err := http.DefaultClient.Do(req)
		gone <- err
	}()
	<-entered
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	time.Sleep(20 * time.Millisecond)
	leave <- true
	waitFor(t, "the event to be stored", func() bool { return r.Stats().Stored == 1 })
}

func TestConnectionIsKept(t *testing.T) {
	r := newReceiver(t, &memory{}, Options{BodyTimeout: 300 * time.Millisecond})
	server := newServer(t, r)
	c := dial(t, server.Listener.Addr())
	in := bufio.NewReader(c)
	for i, want := range []int{200, 400, 405, 200} {
		method, body := "POST", "{}"
		switch want {
		case 400:
			body = "x"
		case 405:
			method, body = "GET", ""
		}
		fmt.Fprintf(c, "%s / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", method, len(body), body)
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		if rep := parseReply(t, res); rep.Code != want {
			t.Errorf("request %d: %+v", i, rep)
		}
		time.Sleep(400 * time.Millisecond) // the deadline of one body is not the next one's
	}
}

// TestTenantsUnderLoad has two tenants and a failing store, many requests at
// once, and checks that each accepted event is stored once and that no byte of
// one tenant shows up in a line of the other.
func TestTenantsUnderLoad(t *testing.T) {
	m := &memory{}
	var calls atomic.Int64
	m.failWith(func(*normalize.Batch) error {
		switch calls.Add(1) % 7 {
		case 3:
			return ErrFull
		case 5:
			return errOther
		}
		return nil
	})
	r := newReceiver(t, m, Options{})
	url := newServer(t, r).URL
	var mu sync.Mutex
	accepted := map[string]bool{}
	var clients sync.WaitGroup
	for client := range 16 {
		tenant := []string{"alpha", "omega"}[client%2]
		clients.Go(func() {
			for i := range 40 {
				var body strings.Builder
				var ids []string
				for k := range 1 + (i*7)%50 {
					id := fmt.Sprintf("%s-%d-%d-%d", tenant, client, i, k)
					ids = append(ids, id)
					fmt.Fprintf(&body, "{\"msg\":\"%s\",\"%s\":[1, {\"%s\":2}],\"error\":\"%s\"}\n", id, tenant, tenant, tenant)
					if k%5 == 4 {
						fmt.Fprintf(&body, "{\"%s\":\n", tenant)
					}
				}
				text := body.String()
				if i%3 == 0 {
					text = gzipped(text)
				}
				rep := post(t, url, strings.NewReader(text))
				if strings.Contains(fmt.Sprint(rep), map[string]string{"alpha": "omega", "omega": "alpha"}[tenant]) {
					t.Errorf("answer to %s: %+v", tenant, rep)
				}
				if rep.Code == 200 && rep.Accepted == len(ids) {
					mu.Lock()
					for _, id := range ids {
						accepted[id] = true
					}
					mu.Unlock()
				} else if rep.Code != 503 && rep.Code != 500 {
					t.Errorf("%+v", rep)
				}
			}
		})
	}
	clients.Wait()
	for _, line := range m.lines {
		if strings.Contains(line, "alpha") == strings.Contains(line, "omega") {
			t.Fatalf("mixed: %s", line)
		}
		var event struct{ Msg string }
		json.Unmarshal([]byte(line), &event)
		if !accepted[event.Msg] {
			t.Fatalf("stored twice or not accepted: %s", line)
		}
		delete(accepted, event.Msg)
	}
	if len(accepted) != 0 {
		t.Errorf("%d accepted events are not stored", len(accepted))
	}
}
