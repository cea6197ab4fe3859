package connlimit

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// The defaults leave a quarter of few descriptors and spare of many.
func TestDefault(t *testing.T) {
	for limit, want := range map[int]int{0: 1, 1: 1, 100: 75, 1024: 768, 6000: 4500, 20_000: 18_500, 1 << 20: 1<<20 - spare, -1: unlimited} {
		if n := Default(limit); n != want {
			t.Errorf("%d descriptors make %d connections, want %d", limit, n, want)
		}
	}
	if n := New(0).Stats().Most; n < 1 {
		t.Errorf("%d here", n)
	}
}

// However many come at once, no more than the limit are open, and each that
// ends makes room for one.
func TestAcquire(t *testing.T) {
	const most, askers = 5, 64
	l := New(most)
	for range 100 {
		var taken sync.Map
		var all sync.WaitGroup
		for i := range askers {
			all.Go(func() {
				if l.Acquire() {
					taken.Store(i, true)
				}
			})
		}
		all.Wait()
		n := 0
		taken.Range(func(any, any) bool { n++; return true })
		if n != most {
			t.Fatalf("%d have been let in, want %d", n, most)
		}
		for range n {
			l.Release()
		}
	}
	if s := l.Stats(); s != (Stats{Most: most, Accepted: 100 * most, Refused: 100 * (askers - most)}) {
		t.Errorf("%+v", s)
	}
}

// Connections over the limit are told so and closed; one that is closed, how
// often it may be, makes room for one.
func TestListener(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	limit := New(2)
	l := limit.Listener(inner, []byte("full"))
	defer l.Close()
	accepted := make(chan net.Conn)
	go func() {
		defer close(accepted)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	dial := func() net.Conn {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(30 * time.Second))
		return c
	}
	dial()
	first := <-accepted
	dial()
	<-accepted
	if b, err := io.ReadAll(dial()); err != nil || string(b) != "full" {
		t.Errorf("the third is told %q, %v", b, err)
	}
	first.Close()
	first.Close()
	dial()
	third := <-accepted
	if b, err := io.ReadAll(dial()); err != nil || string(b) != "full" {
		t.Errorf("one more is told %q, %v", b, err)
	}
	third.Close()
	if s := limit.Stats(); s != (Stats{Most: 2, Open: 1, Accepted: 3, Refused: 2}) {
		t.Errorf("%+v", s)
	}
}

// What a refused connection is told is not lost because of what its client has
// sent meanwhile; without room for that it is closed at once.
func TestRefuse(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	limit := New(1)
	pair := func() (client, server net.Conn) {
		client, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		client.SetDeadline(time.Now().Add(30 * time.Second))
		if server, err = inner.Accept(); err != nil {
			t.Fatal(err)
		}
		return client, server
	}
	client, server := pair()
	limit.refuse(server, []byte("full"))
	io.WriteString(client, "a request")
	if b, err := io.ReadAll(client); err != nil || string(b) != "full" {
		t.Errorf("told %q, %v", b, err)
	}
	client.Close()
	for range maxLeaving {
		limit.leaving <- struct{}{}
	}
	client, server = pair()
	limit.refuse(server, []byte("full"))
	if b, err := io.ReadAll(client); err != nil || string(b) != "full" {
		t.Errorf("told %q, %v", b, err)
	}
	if _, err := server.Write([]byte("x")); err == nil {
		t.Error("it is open still")
	}
}

// CloseAfterBacklog lets in the connections that were complete and not accepted yet.
func TestCloseAfterBacklog(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := New(10).Listener(inner, nil)
	const waiting = 3
	for range waiting {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	l.CloseAfterBacklog()
	l.CloseAfterBacklog()
	select {
	case <-l.Closed():
		t.Error("it is closed before its backlog is accepted")
	default:
	}
	for range waiting {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	if _, err := l.Accept(); err == nil {
		t.Error("a connection is accepted that nobody has opened")
	}
	if c, err := net.Dial("tcp", inner.Addr().String()); err == nil {
		c.Close()
		t.Error("the listener is open")
	}
	<-l.Closed()
}

// AwaitNone returns when the last connection is released.
func TestAwaitNone(t *testing.T) {
	l := New(2)
	l.AwaitNone(time.Hour)
	l.Acquire()
	l.Acquire()
	done := make(chan struct{})
	go func() { l.AwaitNone(time.Hour); close(done) }()
	l.Release()
	l.Release()
	<-done
	l.Acquire()
	l.AwaitNone(time.Nanosecond)
}
