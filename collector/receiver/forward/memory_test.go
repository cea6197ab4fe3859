package forward

import (
	"context"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/admission"
	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
)

// server takes messages on a real socket, with a budget: a connection
// has 32 KiB, and the entries of a compressed message want 128 KiB.
func server(t *testing.T, maxEvent int, change ...func(*receiver.Options)) (r *receiver.Receiver, addr string, lines func() string) {
	t.Helper()
	var mu sync.Mutex
	var stored strings.Builder
	store := func(_ context.Context, b *normalize.Batch, _ receiver.StoreOptions) (receiver.Stored, error) {
		mu.Lock()
		defer mu.Unlock()
		stored.Write(b.AppendTo(nil))
		return receiver.Stored{}, nil
	}
	o := receiver.Options{
		Limits:      normalize.Limits{MaxEventBytes: maxEvent, MaxPast: -1, MaxFuture: -1},
		MaxUnpacked: 64 << 10, InFlight: 384 << 10,
	}
	for _, f := range change {
		f(&o)
	}
	r = receiver.New(receiver.StoreFunc(store), o)
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
		"Forward":       arr(slices.Repeat([]string{entry}, 300)...),
		"PackedForward": bin(strings.Repeat(entry, 300)),
	} {
		t.Run(name, func(t *testing.T) {
			r, addr, lines := server(t, 16<<10)
			large := arr(str(strings.Repeat("x", 15_000)), entries, dict(str("chunk"), str("c2")))
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
			if s := r.Stats(); s.Received != 301 || s.Stored != 301 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// While others use the budget a message waits for memory, and is taken then.
func TestMessageWaitsForMemory(t *testing.T) {
	c := admission.New()
	r, addr, lines := server(t, 48<<10, func(o *receiver.Options) { o.Admission, o.InFlight = c, 576<<10 })
	memory, a, b := c.Resource(admission.Memory), c.Named("a", 1), c.Named("b", 1)
	if !memory.Acquire(a, 380<<10) || !memory.Acquire(b, 130<<10) {
		t.Fatal("the budget is not empty")
	}
	data := compressed("two", "c2")
	conn := send(t, addr, data)
	await(t, func(s *receiver.Stats) bool { return s.WireBytes >= uint64(len(data)) }, r)
	if s := r.Stats(); s.Received != 0 || lines() != "" {
		t.Errorf("%+v\n%s", s, lines())
	}
	memory.Release(a, 380<<10)
	memory.Release(b, 130<<10)
	conn.(*net.TCPConn).CloseWrite()
	if got, err := io.ReadAll(conn); err != nil || string(got) != acks("c2") {
		t.Fatalf("%q %v", got, err)
	}
	if s := r.Stats(); s.Received != 1 || s.Stored != 1 || !strings.Contains(lines(), `"two"`) {
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
