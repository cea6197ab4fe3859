package forward

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
)

// server takes messages on a real socket, with a budget: a connection
// has 32 KiB, and the entries of a compressed message want 128 KiB.
func server(t *testing.T, maxEvent int) (r *receiver.Receiver, addr string, lines func() string) {
	t.Helper()
	var mu sync.Mutex
	var stored strings.Builder
	store := func(_ context.Context, b *normalize.Batch, _ receiver.StoreOptions) (receiver.Stored, error) {
		mu.Lock()
		defer mu.Unlock()
		stored.Write(b.Lines)
		return receiver.Stored{}, nil
	}
	r = receiver.New(receiver.StoreFunc(store), receiver.Options{
		Limits:      normalize.Limits{MaxEventBytes: maxEvent, MaxPast: -1, MaxFuture: -1},
		MaxUnpacked: 64 << 10, InFlight: 256 << 10,
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.ServeStream(ctx, ln, Protocol{}, nil) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if s := r.Stats(); s.InFlight != 0 || s.Received != s.Stored+s.RejectedTotal()+s.Failed {
			t.Errorf("%d bytes are taken at the end; %d received, %d stored, %v rejected, %d failed", s.InFlight, s.Received, s.Stored, s.Rejected, s.Failed)
		}
	})
	return r, ln.Addr().String(), func() string {
		mu.Lock()
		defer mu.Unlock()
		return stored.String()
	}
}

// send sends messages and returns the connection, which ends with the test.
func send(t *testing.T, addr, messages string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(conn, messages); err != nil {
		t.Fatal(err)
	}
	return conn
}

func message(text, name string) string {
	return arr(str("app.x"), num(1749988800), dict(str("log"), str(text)), dict(str("chunk"), str(name)))
}

func compressed(text, name string) string {
	return arr(str("app.x"), bin(packed(arr(num(1749988800), dict(str("log"), str(text))))),
		dict(str("compressed"), str("gzip"), str("chunk"), str(name)))
}

func acks(names ...string) (s string) {
	for _, name := range names {
		s += "\x81\xa3ack" + str(name)
	}
	return s
}

// A message that there is never memory for is neither stored, nor acknowledged,
// nor counted: its sender has it still. The messages before it are stored and
// acknowledged, the connection is closed, and those after it come again.
func TestNoMemoryForMessage(t *testing.T) {
	r, addr, lines := server(t, 16<<10) // connections have 128 KiB in all
	conn := send(t, addr, message("one", "c1")+compressed("two", "c2")+message("three", "c3"))
	if got, err := io.ReadAll(conn); err != nil || string(got) != acks("c1") {
		t.Fatalf("%q %v", got, err)
	}
	if s := r.Stats(); s.Received != 1 || s.Stored != 1 || s.RejectedTotal() != 0 || strings.Count(lines(), "\n") != 1 || !strings.Contains(lines(), `"one"`) {
		t.Errorf("%+v\n%s", s, lines())
	}
	// The others are taken by a new connection, as a client sends them again.
	conn = send(t, addr, message("two", "c2")+message("three", "c3"))
	conn.(*net.TCPConn).CloseWrite()
	if got, err := io.ReadAll(conn); err != nil || string(got) != acks("c2", "c3") {
		t.Fatalf("%q %v", got, err)
	}
	if s := r.Stats(); s.Received != 3 || s.Stored != 3 {
		t.Errorf("%+v\n%s", s, lines())
	}
}

// The same goes for one whose tag, which is in the line of each entry, makes it larger
// than connections may be.
func TestNoMemoryForTags(t *testing.T) {
	entry := arr(num(1749988800), dict())
	for name, entries := range map[string]string{
		"Forward":       arr(slices.Repeat([]string{entry}, 1000)...),
		"PackedForward": bin(strings.Repeat(entry, 1000)),
	} {
		t.Run(name, func(t *testing.T) {
			r, addr, lines := server(t, 16<<10)
			large := arr(str(strings.Repeat("x", 8000)), entries, dict(str("chunk"), str("c2")))
			conn := send(t, addr, message("one", "c1")+large)
			if got, err := io.ReadAll(conn); err != nil || string(got) != acks("c1") {
				t.Fatalf("%q %v", got, err)
			}
			if s := r.Stats(); s.Received != 1 || s.Stored != 1 || strings.Count(lines(), "\n") != 1 {
				t.Errorf("%+v", s)
			}
			// A short tag is no burden.
			small := arr(str("app.x"), entries, dict(str("chunk"), str("c2")))
			conn = send(t, addr, small)
			conn.(*net.TCPConn).CloseWrite()
			if got, err := io.ReadAll(conn); err != nil || string(got) != acks("c2") {
				t.Fatalf("%q %v", got, err)
			}
			if s := r.Stats(); s.Received != 1001 || s.Stored != 1001 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// While others use the budget a message waits for memory, and is taken then.
func TestMessageWaitsForMemory(t *testing.T) {
	r, addr, lines := server(t, 48<<10) // connections have 192 KiB in all
	body, write := io.Pipe()
	t.Cleanup(func() { body.Close() })
	req := httptest.NewRequest("POST", "/api/logs", body)
	req.ContentLength = 60 << 10
	answered := make(chan int, 1)
	go func() {
		rec := httptest.NewRecorder()
		r.ServeHTTP(rec, req)
		answered <- rec.Code
	}()
	if _, err := io.WriteString(write, `{"msg":"`); err != nil {
		t.Fatal(err)
	}
	await(t, func(s *receiver.Stats) bool { return s.InFlight >= 120<<10 }, r)
	data := compressed("two", "c2")
	conn := send(t, addr, data)
	await(t, func(s *receiver.Stats) bool { return s.WireBytes >= uint64(len(data)) }, r)
	if s := r.Stats(); s.Received != 0 || lines() != "" {
		t.Errorf("%+v\n%s", s, lines())
	}
	io.WriteString(write, strings.Repeat("x", 60<<10-len(`{"msg":""}`))+`"}`)
	write.Close()
	if code := <-answered; code != http.StatusBadRequest { // it is larger than an event may be
		t.Error(code)
	}
	conn.(*net.TCPConn).CloseWrite()
	if got, err := io.ReadAll(conn); err != nil || string(got) != acks("c2") {
		t.Fatalf("%q %v", got, err)
	}
	if s := r.Stats(); s.Received != 2 || s.Stored != 1 || s.Rejected[normalize.ReasonTooLarge] != 1 || !strings.Contains(lines(), `"two"`) {
		t.Errorf("%+v\n%s", s, lines())
	}
}

func await(t *testing.T, is func(*receiver.Stats) bool, r *receiver.Receiver) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		s := r.Stats()
		if is(&s) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%+v", s)
		}
	}
}
