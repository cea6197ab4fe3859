package receiver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/internal/memnet"
)

// serveTCP starts r on a loopback port; stop ends it and waits.
func serveTCP(t testing.TB, r *Receiver) (addr net.Addr, stop func()) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.ServeStream(ctx, ln, NDJSON{r.opts.Limits.MaxEventBytes}, nil) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("ServeStream: %v", err)
		}
	})
	t.Cleanup(stop)
	return ln.Addr(), stop
}

func waitFor(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited a minute for %s", what)
		}
	}
}

func TestTCP(t *testing.T) {
	small := normalize.Limits{MaxEventBytes: 200}
	long := `{"msg":"` + strings.Repeat("x", 300) + `"}`
	for _, c := range []struct {
		name   string
		writes []string // with a pause between them
		stored int
		reject string
	}{
		{"lines", []string{"{\"a\":1}\n{\"a\":2}\r\n\n{\"a\":3}\n"}, 3, "map[]"},
		{"half lines", []string{"{\"a", "\":1}", "\n{\"a\":", "2}\n"}, 2, "map[]"},
		{"array in a line", []string{"[{},{}]\n"}, 2, "map[]"},
		{"last line without its end", []string{"{}\n{\"a\":1}"}, 2, "map[]"},
		{"torn last line", []string{"{}\n{\"a\":1"}, 1, "map[torn:1]"},
		{"torn last line that is JSON", []string{"{}\n12"}, 1, "map[torn:1]"},
		{"garbage", []string{"{}\nGET / HTTP/1.1\r\nHost: x\r\n\r\n{}\n"}, 2, "map[syntax:2]"},
		{"binary garbage", []string{"\x00\xff\xfe\n\x80\n{}\n"}, 1, "map[syntax:2]"},
		{"bad UTF-8", []string{"{\"a\":\"\xff\"}\n{}\n"}, 2, "map[]"},
		{"line too long", []string{"{}\n" + long + "\n{}\n"}, 2, "map[too_large:1]"},
		{"line too long, in pieces", []string{"{}\n" + long[:100], long[100:250], long[250:], "\n{}\n"}, 2, "map[too_large:1]"},
		{"line too long without end", []string{"{}\n" + long}, 1, "map[too_large:1]"},
		{"TLS", []string{"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"}, 0, "map[syntax:1]"},
		{"HTTP, as a browser speaks it for any web page", []string{"POST / HTTP/1.1\r\nHost: x\r\n\r\n{\"msg\":\"smuggled\"}\n"}, 0, "map[syntax:1]"},
		{"HTTP in pieces", []string{"P", "OS", "T / HTTP/1.1\r\n\r\n{}\n"}, 0, "map[syntax:1]"},
		{"not quite HTTP", []string{"P", "OSE\n{}\n"}, 1, "map[syntax:1]"},
		{"PROXY header", []string{"PROXY TCP4 192.0.2.1 192.0.2.2 40000 514\r\n{}\n"}, 0, "map[syntax:1]"},
		{"PROXY header, binary", []string{"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x01\xc0\x00\x02\x02\x9c\x40\x02\x02{}\n"}, 0, "map[syntax:1]"},
		{"the same in pieces", []string{"\r\n", "\r\n\x00\r", "\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x01\xc0\x00\x02\x02\x9c\x40\x02\x02{}\n"}, 0, "map[syntax:1]"},
		{"not quite a PROXY header", []string{"\r\n", "\r\n{}\n"}, 1, "map[]"},
		{"nothing", nil, 0, "map[]"},
		{"blank", []string{"\n \n  "}, 0, "map[]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &memory{}
			r := newReceiver(t, m, Options{Limits: small})
			addr, stop := serveTCP(t, r)
			conn := dial(t, addr)
			for i, w := range c.writes {
				if i > 0 {
					time.Sleep(10 * time.Millisecond)
				}
				if _, err := io.WriteString(conn, w); err != nil {
					t.Fatal(err)
				}
			}
			conn.(*net.TCPConn).CloseWrite()
			if n, _ := conn.Read(make([]byte, 1)); n != 0 { // closed when all is stored
				t.Error("the server wrote")
			}
			stop()
			s := r.Stats()
			if m.count() != c.stored || fmt.Sprint(s.Rejected) != c.reject && (len(s.Rejected) > 0 || c.reject != "map[]") {
				t.Errorf("%d stored, rejected %v", m.count(), s.Rejected)
			}
		})
	}
}

func TestTCPOrderAndLongLines(t *testing.T) {
	m := &memory{}
	r := newReceiver(t, m, Options{})
	addr, stop := serveTCP(t, r)
	rng := rand.New(rand.NewPCG(4, 2))
	var want []string
	conn := dial(t, addr)
	for i := range 300 {
		size := rng.IntN(200)
		if i%50 == 7 {
			size = 300_000 + rng.IntN(600_000)
		}
		line := fmt.Sprintf(`{"time":"2026-05-28T12:40:00.%09dZ","level":"INFO","msg":"%s"}`, i, strings.Repeat("é", size/2))
		want = append(want, line)
		for rest := line + "\n"; rest != ""; {
			n := min(1+rng.IntN(100_000), len(rest))
			if _, err := io.WriteString(conn, rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
	}
	conn.Close()
	waitFor(t, "the lines", func() bool { return m.count() == len(want) })
	stop()
	for i := range want {
		if m.lines[i] != want[i] {
			t.Fatalf("line %d is %.200s", i, m.lines[i])
		}
	}
}

func TestTCPReset(t *testing.T) {
	m := &memory{}
	r := newReceiver(t, m, Options{})
	addr, _ := serveTCP(t, r)
	for range 20 {
		conn := dial(t, addr)
		want := m.count() + 1
		io.WriteString(conn, "{}\n{\"a\":")
		waitFor(t, "the whole line", func() bool { return m.count() == want })
		conn.(*net.TCPConn).SetLinger(0)
		conn.Close()
	}
	waitFor(t, "the torn lines", func() bool { return r.Stats().Rejected[ReasonTorn] == 20 })
}

func TestTCPWaitsWhileTheStoreIsFull(t *testing.T) {
	m := &memory{}
	m.failWith(func(*normalize.Batch) error { return ErrFull })
	r := newReceiver(t, m, Options{})
	addr, stop := serveTCP(t, r)
	conn := dial(t, addr)
	// The sender is held up in the end.
	var sent atomic.Int64
	done := make(chan bool)
	const total = 200_000
	go func() {
		defer close(done)
		line := "{\"msg\":\"" + strings.Repeat("x", 90) + "\"}\n"
		for range total {
			if _, err := io.WriteString(conn, line); err != nil {
				t.Error(err)
				return
			}
			sent.Add(1)
		}
	}()
	last, same := int64(-1), 0
	waitFor(t, "the sender to block", func() bool {
		now := sent.Load()
		if same++; now != last || r.Stats().StoreRetries == 0 {
			same = 0
		}
		last = now
		return same == 50
	})
	if last == total {
		t.Fatal("the sender was never held up")
	}
	if s := r.Stats(); s.StoreRetries == 0 || s.Received != 0 {
		t.Errorf("%+v", s)
	}
	m.failWith(nil)
	<-done
	conn.Close()
	waitFor(t, "all lines", func() bool { return m.count() == total })
	stop()
}

func TestTCPStoreBreaks(t *testing.T) {
	for name, fail := range map[string]func(*normalize.Batch) error{
		"error": func(*normalize.Batch) error { return errOther },
		"panic": func(*normalize.Batch) error { panic("the store is on fire") },
	} {
		t.Run(name, func(t *testing.T) {
			m := &memory{}
			m.failWith(fail)
			r := newReceiver(t, m, Options{})
			addr, _ := serveTCP(t, r)
			conn := dial(t, addr)
			io.WriteString(conn, "{}\nbad\n{}\n")
			conn.SetReadDeadline(time.Now().Add(time.Minute))
			if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the connection was not closed: %v", err)
			}
			m.failWith(nil)
			other := dial(t, addr)
			io.WriteString(other, "{}\n")
			waitFor(t, "the next connection's line", func() bool { return m.count() == 1 })
			other.Close()
			waitFor(t, "the ledger", func() bool { return r.Stats().Failed == 2 && r.Stats().Received == 4 })
		})
	}
}

func TestTCPStop(t *testing.T) {
	m := &memory{}
	r := newReceiver(t, m, Options{DrainTimeout: 100 * time.Millisecond})
	addr, stop := serveTCP(t, r)
	var conns []net.Conn
	for i := range 10 {
		conn := dial(t, addr)
		conns = append(conns, conn)
		fmt.Fprintf(conn, "{\"n\":%d}\n{\"torn\":", i)
	}
	waitFor(t, "the whole lines", func() bool { return m.count() == 10 })
	m.failWith(func(*normalize.Batch) error { return ErrFull })
	io.WriteString(conns[0], "1}\n")
	waitFor(t, "a connection to wait", func() bool { return r.Stats().StoreRetries > 0 })
	start := time.Now()
	stop()
	if took := time.Since(start); took > 30*time.Second { // the store is full for good
		t.Errorf("stopping took %v", took)
	}
	s := r.Stats()
	if s.Failed != 1 || s.Rejected[ReasonTorn] != 9 || s.Stored != 10 {
		t.Errorf("%+v", s)
	}
	if _, err := net.Dial("tcp", addr.String()); err == nil {
		t.Error("it still listens")
	}
}

// dialPipe connects to l in virtual time.
func dialPipe(t testing.TB, l *memnet.Listener) net.Conn {
	t.Helper()
	conn, err := l.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// Connections that send much, or sent a long line once, do not keep the memory that
// others need to be read.
func TestConnectionsLeaveRoom(t *testing.T) {
	for name, burst := range map[string]string{
		"fast": strings.Repeat("{}\n", 20_000),
		"long": `{"msg":"` + strings.Repeat("x", 40_000) + "\"}\n",
	} {
		t.Run(name, func(t *testing.T) { testLeavesRoom(t, burst) })
	}
}

func testLeavesRoom(t *testing.T, burst string) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		r := newReceiver(t, m, Options{MaxUnpacked: 64 << 10, InFlight: 3 << 20, IdleTimeout: time.Hour, Limits: normalize.Limits{MaxEventBytes: 64 << 10}})
		ln := memnet.Listen()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.ServeStream(ctx, ln, NDJSON{r.opts.Limits.MaxEventBytes}, nil) }()
		start := time.Now()
		for i := range 12 {
			if _, err := io.WriteString(dialPipe(t, ln), burst); err != nil {
				t.Errorf("connection %d is closed after %v: %v", i, time.Since(start), err)
			}
		}
		if took := time.Since(start); took > time.Second { // of virtual time
			t.Errorf("they are read after %v", took)
		}
		synctest.Wait()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if s := r.Stats(); int(s.Stored) != 12*strings.Count(burst, "\n") || s.Received != s.Stored || s.InFlight != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// A connection in the middle of a long line, which waits for the memory of another one, is
// closed, so that a third one is read.
func TestLongLinesDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		r := newReceiver(t, m, Options{MaxUnpacked: 256 << 10, InFlight: 1 << 20, IdleTimeout: time.Hour, Limits: normalize.Limits{MaxEventBytes: 100 << 10}})
		ln := memnet.Listen()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.ServeStream(ctx, ln, NDJSON{r.opts.Limits.MaxEventBytes}, nil) }()
		for range 2 {
			conn := dialPipe(t, ln)
			go io.WriteString(conn, strings.Repeat("x", 90<<10)) // and no end
		}
		synctest.Wait()
		start := time.Now()
		if _, err := io.WriteString(dialPipe(t, ln), "{}\n"); err != nil {
			t.Error(err)
		}
		took := time.Since(start)
		if synctest.Wait(); took > 15*time.Second || m.count() != 1 {
			t.Errorf("the line is read after %v, %d are stored", took, m.count())
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestTCPLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		r := newReceiver(t, m, Options{MaxConns: 2, IdleTimeout: 10 * time.Minute})
		ln := memnet.Listen()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.ServeStream(ctx, ln, NDJSON{r.opts.Limits.MaxEventBytes}, nil) }()
		start := time.Now()
		ended := func(conn net.Conn) time.Duration {
			if _, err := conn.Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("read: %v", err)
			}
			return time.Since(start)
		}
		a, b := dialPipe(t, ln), dialPipe(t, ln)
		synctest.Wait()
		if took := ended(dialPipe(t, ln)); took != 0 {
			t.Errorf("a third connection is closed after %v", took)
		}
		if s := r.Stats(); s.Connections != 2 || s.ConnectionsRefused != 1 || s.ConnectionsTotal != 2 {
			t.Errorf("%+v", s)
		}
		// One that sends now and then stays, one that does not is closed.
		idle := make(chan time.Duration, 1)
		go func() { idle <- ended(b) }()
		for range 5 {
			time.Sleep(9 * time.Minute)
			io.WriteString(a, "{}\n")
		}
		if took := <-idle; took != 10*time.Minute {
			t.Errorf("the idle connection is closed after %v", took)
		}
		if took := ended(a); took != 55*time.Minute {
			t.Errorf("the other one is closed after %v", took)
		}
		if n := m.count(); n != 5 {
			t.Errorf("%d lines", n)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestTCPBudget(t *testing.T) {
	m := &memory{}
	r := newReceiver(t, m, Options{MaxUnpacked: 100 << 10, InFlight: 405 << 10, IdleTimeout: time.Minute})
	addr, _ := serveTCP(t, r)
	first := dial(t, addr)
	io.WriteString(first, "{\"a\":\""+strings.Repeat("x", 70<<10))
	waitFor(t, "the budget to be used up", func() bool { return r.Stats().InFlight > 250<<10 })
	second := dial(t, addr)
	io.WriteString(second, "{}\n")
	time.Sleep(50 * time.Millisecond)
	if n := m.count(); n != 0 {
		t.Errorf("%d lines stored without memory", n)
	}
	first.Close()
	waitFor(t, "the second connection's line", func() bool { return m.count() == 1 })
	second.Close()
	if got := r.Stats().Rejected[ReasonTorn]; got != 1 {
		t.Errorf("%d torn", got)
	}
}

func TestTCPOverTLS(t *testing.T) {
	m := &memory{}
	r := newReceiver(t, m, Options{})
	cert := testCertificate(t)
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		done <- r.ServeStream(ctx, tls.NewListener(inner, &tls.Config{Certificates: []tls.Certificate{cert}}), NDJSON{r.opts.Limits.MaxEventBytes}, nil)
	}()
	plain := dial(t, inner.Addr())
	io.WriteString(plain, "{\"plain\":true}\n")
	conn, err := tls.Dial("tcp", inner.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(conn, "{}\n{}\n")
	conn.Close()
	waitFor(t, "two lines", func() bool { return m.count() == 2 })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestTCPManyWithFaults sends from many connections at once, which break off
// anywhere, into a store that fails, and checks that no line is torn, mixed up
// or stored twice.
func TestTCPManyWithFaults(t *testing.T) {
	m := &memory{}
	var calls atomic.Int64
	m.failWith(func(*normalize.Batch) error {
		if calls.Add(1)%5 == 0 {
			return ErrFull
		}
		return nil
	})
	r := newReceiver(t, m, Options{})
	addr, stop := serveTCP(t, r)
	var senders sync.WaitGroup
	whole := atomic.Int64{}
	for id := range 20 {
		senders.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(id), 1))
			conn, err := net.Dial("tcp", addr.String())
			if err != nil {
				t.Error(err)
				return
			}
			for n := range 200 {
				line := fmt.Sprintf("{\"msg\":\"%d/%d\",\"pad\":\"%s\"}\n", id, n, strings.Repeat("x", rng.IntN(500)))
				if id%4 == 0 && n == 150 {
					io.WriteString(conn, line[:len(line)-5])
					break
				}
				at := rng.IntN(len(line))
				io.WriteString(conn, line[:at])
				io.WriteString(conn, line[at:])
				whole.Add(1)
			}
			conn.(*net.TCPConn).CloseWrite()
			conn.Read(make([]byte, 1))
			conn.Close()
		})
	}
	senders.Wait()
	stop()
	next := map[string]int{}
	for _, line := range m.lines {
		var id string
		var n int
		_, text, _ := strings.Cut(line, `"msg":"`)
		text, _, _ = strings.Cut(text, `"`)
		id, number, _ := strings.Cut(text, "/")
		fmt.Sscan(number, &n)
		if next[id] != n {
			t.Fatalf("sender %s: line %d where %d was due", id, n, next[id])
		}
		next[id]++
	}
	if got := r.Stats().Rejected[ReasonTorn]; int64(len(m.lines)) != whole.Load() || got != 5 {
		t.Errorf("%d of %d lines, %d torn", len(m.lines), whole.Load(), got)
	}
}
